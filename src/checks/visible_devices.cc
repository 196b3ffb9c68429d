// SPDX-License-Identifier: Apache-2.0
// CUDA_VISIBLE_DEVICES as the CUDA driver reads it: a comma-separated list of ordinals or of UUID
// prefixes; the first entry that is not valid ends the list, so one wrong entry at the front hides
// every GPU.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

constexpr const char* k_name = "CUDA_VISIBLE_DEVICES";

bool is_uuid(std::string_view entry) {
  return starts_with(entry, "GPU-") || starts_with(entry, "MIG-");
}
bool is_index(std::string_view entry) {
  return !entry.empty() && entry.size() < 9 &&
         std::all_of(entry.begin(), entry.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool matches_uuid(const facts::Facts& facts, std::string_view entry) {
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    if (gpu.uuid && starts_with(*gpu.uuid, entry)) return true;
    for (const facts::MigInstance& instance : gpu.mig_instances) {
      if (starts_with(instance.uuid, entry)) return true;
    }
  }
  return false;
}

bool all_uuids_known(const facts::Facts& facts) {
  return !facts.nvml.gpus.empty() &&
         std::all_of(facts.nvml.gpus.begin(), facts.nvml.gpus.end(),
                     [](const facts::NvmlGpu& gpu) { return gpu.uuid && !gpu.uuid->empty(); });
}

struct Reading {
  size_t valid = 0;    // entries before the first invalid one
  std::string bad;     // that entry; empty = all fine
  bool mixed = false;  // ordinals and UUIDs in one list
  bool repeated = false;
};

// `gpus`: how many ordinals exist; 0 = not known, then ordinals are not judged.
Reading read(const facts::Facts& facts, const std::string& value, size_t gpus) {
  Reading reading;
  bool uuids = false, ordinals = false;
  std::vector<std::string> done;
  for (std::string_view raw : split(value, ',')) {
    const std::string entry(trim(raw));
    const bool uuid = is_uuid(entry);
    bool valid = uuid ? !all_uuids_known(facts) || matches_uuid(facts, entry) : is_index(entry);
    if (valid && !uuid && gpus > 0) valid = std::stoul(entry) < gpus;
    if (!valid) {
      reading.bad = entry.empty() ? "''" : entry;
      return reading;
    }
    reading.repeated = reading.repeated || std::find(done.begin(), done.end(), entry) != done.end();
    (uuid ? uuids : ordinals) = true;
    done.push_back(entry);
    ++reading.valid;
  }
  reading.mixed = uuids && ordinals;
  return reading;
}

size_t known_gpus(const Input& input) {
  // NVML shows all GPUs whatever the variable says; CUDA already obeys it.
  if (!input.facts.nvml.gpus.empty()) return input.facts.nvml.gpus.size();
  return pci_gpus(input.facts).size();
}

bool several_models(const Input& input) {
  for (const GpuView& gpu : input.gpus) {
    if (gpu.name != input.gpus.front().name) return true;
  }
  return false;
}

}  // namespace

std::vector<Finding> check_visible_devices(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (!has_variable(facts, k_name) || input.gpus.empty()) return {};
  const std::string value = variable(facts, k_name);
  const size_t gpus = known_gpus(input);
  Finding made = finding("cuda_visible_devices", Severity::error, k_machine);
  made.args["value"] = value;
  made.args["count"] = std::to_string(gpus);
  made.args["last"] = gpus > 0 ? std::to_string(gpus - 1) : "0";
  made.evidence.push_back({"env", k_name, value.empty() ? "(empty)" : value});
  if (!facts.nvml.gpus.empty())
    made.evidence.push_back({"nvml", "nvmlDeviceGetCount", std::to_string(gpus)});

  if (trim(value).empty() || trim(value) == "-1" || value == "NoDevFiles") {
    made.variant = "empty";
    return {made};
  }
  const Reading reading = read(facts, value, gpus);
  made.args["bad"] = reading.bad;
  made.args["valid"] = std::to_string(reading.valid);
  if (!reading.bad.empty()) {
    made.variant = reading.valid == 0 ? "" : "cut";
    if (reading.valid > 0) made.severity = Severity::warning;
    return {made};
  }
  if (reading.mixed || reading.repeated) {
    made.severity = Severity::warning;
    made.variant = reading.mixed ? "mixed" : "repeated";
    return {made};
  }
  // CUDA counts the fastest GPU first, nvidia-smi counts by PCI address.
  if (several_models(input) && !is_uuid(trim(value)) &&
      variable(facts, "CUDA_DEVICE_ORDER") != "PCI_BUS_ID") {
    made.severity = Severity::note;
    made.variant = "order";
    return {made};
  }
  return {};
}

}  // namespace cufit::checks
