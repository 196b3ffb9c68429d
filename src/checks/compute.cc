// SPDX-License-Identifier: Apache-2.0
// The compute check of each GPU that CUDA shows: which step failed with which code, and what that
// proves.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/torch_checks.h"

namespace cufit::checks {

namespace {

constexpr int k_out_of_memory = 2, k_device_unavailable = 46, k_invalid_device = 101,
              k_ecc_uncorrectable = 214;

std::string holders(const facts::NvmlGpu* nvml) {
  if (nvml == nullptr || !nvml->processes) return {};
  std::vector<std::string> names;
  for (const facts::GpuProcess& process : *nvml->processes)
    names.push_back(process.name + " (" + std::to_string(process.pid) + ")");
  return join(names, ", ");
}

bool is_exclusive(const facts::NvmlGpu* nvml) {
  return nvml != nullptr && nvml->compute_mode && *nvml->compute_mode != "default";
}

Finding failed_check(const Input& input, const GpuView& gpu) {
  const facts::CudaDevice& cuda = *gpu.cuda;
  int code = cuda.compute_code.value_or(0);
  std::string who = holders(gpu.nvml);
  Finding made = finding("compute_check_failed", Severity::error, subject_of(gpu));
  if (code == k_out_of_memory) {
    made.id = who.empty() ? "gpu_memory_exhausted" : "gpu_memory_in_use";
    made.variant = "compute";
  } else if ((code == k_device_unavailable || code == k_invalid_device) && is_exclusive(gpu.nvml)) {
    made.id = "gpu_mode_config";
    made.variant = *gpu.nvml->compute_mode == "prohibited" ? "prohibited" : "exclusive_taken";
    made.evidence.push_back(seen(gpu.nvml->compute_mode));
  } else if (code == k_ecc_uncorrectable) {
    made.id = "gpu_memory_ecc";
    made.variant = "compute";
  } else if (*cuda.compute_check == "result") {
    made.variant = "wrong_result";
  }
  const knowledge::CodeRow* row = input.knowledge.find_cuda_code(code);
  std::string text = std::to_string(code) + (row != nullptr ? " " + std::string(row->name) : "");
  made.args = {{"gpu", gpu.name},
               {"index", std::to_string(gpu.index)},
               {"mode", gpu.nvml != nullptr ? gpu.nvml->compute_mode.value_or("") : ""},
               {"step", *cuda.compute_check},
               {"code", text},
               {"processes", who},
               {"free", cuda.memory_free_bytes ? format_bytes(*cuda.memory_free_bytes) : ""}};
  if (gpu.nvml != nullptr && gpu.nvml->memory_free_bytes) {
    made.args["free"] = format_bytes(*gpu.nvml->memory_free_bytes);
    made.evidence.push_back(seen(gpu.nvml->memory_free_bytes.source, made.args["free"]));
  }
  made.evidence.push_back(seen(cuda.compute_check.source, *cuda.compute_check + ": " + text));
  return made;
}

}  // namespace

std::vector<Finding> check_compute(const Input& input) {
  std::vector<Finding> found;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.cuda == nullptr) continue;
    const Fact<std::string>& check = gpu.cuda->compute_check;
    if (check && *check != "ok") found.push_back(failed_check(input, gpu));
    if (!check && (check.why == WhyNot::timeout || check.why == WhyNot::crashed)) {
      bool hung = check.why == WhyNot::timeout;
      found.push_back(finding(hung ? "driver_probe_hung" : "driver_probe_crashed", Severity::error,
                              subject_of(gpu)));
      found.back().args = {{"call", check.source.detail}, {"note", check.note}};
      found.back().evidence = {
          {to_string(check.source.kind), check.source.detail, why_missing(check)}};
    }
    const Fact<std::string>& memory = gpu.cuda->memory_test;
    if (memory && *memory != "ok") {
      Finding made = finding("gpu_memory_ecc", Severity::error, subject_of(gpu));
      made.variant = "pattern";
      made.args = {{"gpu", gpu.name}, {"result", *memory}};
      made.evidence = {seen(memory)};
      found.push_back(std::move(made));
    }
  }
  return found;
}

}  // namespace cufit::checks
