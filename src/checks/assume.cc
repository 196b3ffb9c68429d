// SPDX-License-Identifier: Apache-2.0
// "What if": replaces the machine's GPUs (--gpu) or driver (--driver) by described ones. Every
// replaced fact is marked `assumed`, and what the real machine answered about the replaced part
// becomes not_asked, so that no check mixes the two worlds.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "checks/doctor.h"

namespace cufit::checks {

namespace {

// Where the described facts come from, and why the machine's own ones are gone.
struct WhyForgotten {
  SourceKind kind;
  const char *detail, *note;
};
constexpr WhyForgotten k_gpu_option{SourceKind::assumed, "--gpu", "replaced by --gpu"};
constexpr WhyForgotten k_driver_option{SourceKind::assumed, "--driver", "replaced by --driver"};
// --gpu describes a machine and nobody said which driver it has.
constexpr WhyForgotten k_no_driver{SourceKind::assumed, "--driver", "not given"};

template <class T>
void forget(Fact<T>& fact, const WhyForgotten& option) {
  fact = missing<T>(WhyNot::not_asked, option.kind, option.detail, option.note);
}

bool looks_like_capability(const std::string& text) {
  bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isdigit(c) || c == '.';
  });
  return digits && contains(text, ".");
}

// "8.9" or "sm_89"; only capabilities that some table row has.
std::optional<ComputeCapability> find_capability(const std::string& text,
                                                 const knowledge::Knowledge& knowledge) {
  auto matches = [&](std::string_view cc) {
    auto parsed = parse_compute_capability(cc);
    return parsed && (parsed->text() == text || "sm_" + parsed->sm() == text) ? parsed
                                                                              : std::nullopt;
  };
  for (const knowledge::Gpu& row : knowledge.gpus)
    if (auto cc = matches(row.cc)) return cc;
  for (const knowledge::DriverWindow& row : knowledge.windows)
    if (auto cc = matches(row.cc)) return cc;
  return std::nullopt;
}

Result<facts::NvmlGpu> describe(const std::string& text, uint32_t index,
                                const knowledge::Knowledge& knowledge) {
  facts::NvmlGpu gpu;
  gpu.index = index;
  std::string wanted = lower(trim(text));
  if (looks_like_capability(wanted) || starts_with(wanted, "sm_")) {
    auto cc = find_capability(wanted, knowledge);
    if (!cc)
      return fail(Code::usage,
                  "--gpu " + text + ": no NVIDIA GPU of the table has this compute capability");
    gpu.compute_capability = known(cc->text(), k_gpu_option.kind, k_gpu_option.detail);
    return gpu;
  }
  const knowledge::Gpu* row = knowledge.find_gpu(trim(text));
  if (row == nullptr) {
    if (const std::string_view maker = knowledge::Knowledge::other_maker(text); !maker.empty())
      return fail(Code::usage,
                  format("--gpu \"{}\": a GPU of {}; cufit judges NVIDIA's alone", text, maker));
    std::vector<std::string> near = knowledge.nearest_gpus(text, 3);
    return fail(Code::usage, "--gpu \"" + text + "\": the GPU table does not know this name" +
                                 (near.empty() ? "" : "; nearest: " + join(near, ", ")) +
                                 "; or a capability such as 8.6");
  }
  gpu.name = known(std::string(row->nvml_name.empty() ? row->name : row->nvml_name),
                   k_gpu_option.kind, "--gpu");
  gpu.compute_capability = known(std::string(row->cc), k_gpu_option.kind, "--gpu, data/gpus.toml");
  // Where it was sold with two sizes, which one it has is not told.
  if (row->memory_gb > 0 && knowledge.gpus_meant(trim(text)).size() == 1) {
    uint64_t bytes = uint64_t(row->memory_gb * 1024) << 20;
    gpu.memory_total_bytes = known(bytes, k_gpu_option.kind, "--gpu, data/gpus.toml");
  }
  return gpu;
}

// The live driver's answers are about the real GPUs and the real driver.
void forget_answers(facts::Facts& facts, const WhyForgotten& option) {
  double seconds = facts.cuda.driver_seconds;
  facts.cuda = {};
  facts.cuda.driver_seconds = seconds;
  for (Fact<int>* fact : {&facts.cuda.init_result, &facts.cuda.driver_version,
                          &facts.cuda.device_count, &facts.nvml.init_result})
    forget(*fact, option);
  facts.kernel.xids.clear();
  forget(facts.kernel.log, option);
}

void forget_kernel_side(facts::Facts& facts, const WhyForgotten& option) {
  facts::KernelDriver& kernel = facts.kernel;
  for (Fact<bool>* fact : {&kernel.nouveau_loaded, &kernel.uvm_loaded, &kernel.uvm_hmm_disabled})
    forget(*fact, option);
  for (Fact<std::string>* fact :
       {&kernel.version, &kernel.flavour, &kernel.module_on_disk, &kernel.package_version,
        &kernel.fabric_manager, &kernel.persistence})
    forget(*fact, option);
  kernel.nvswitch = false;
  kernel.nodes.clear();
  forget(facts.nvml.driver_version, option);
  forget(facts.nvml.cuda_version, option);
}

Result<bool> replace_gpus(facts::Facts& facts, const std::vector<std::string>& names,
                          const knowledge::Knowledge& knowledge) {
  std::vector<facts::NvmlGpu> gpus;
  for (const std::string& name : names) {
    CUFIT_TRY(gpu, describe(name, uint32_t(gpus.size()), knowledge));
    gpus.push_back(std::move(gpu));
  }
  // A driver that the machine has stays ("would this machine drive that GPU?"); a machine without
  // one says nothing about the driver of the machine that is asked for.
  bool has_driver = facts.kernel.version || facts.nvml.driver_version;
  Fact<int> driver_version = facts.cuda.driver_version;
  forget_answers(facts, has_driver ? k_gpu_option : k_no_driver);
  if (has_driver)
    facts.cuda.driver_version = driver_version;
  else
    forget_kernel_side(facts, k_no_driver);
  facts.nvml.gpus = std::move(gpus);
  forget(facts.pci, k_gpu_option);
  return true;
}

Result<bool> replace_driver(facts::Facts& facts, const std::string& text,
                            const knowledge::Knowledge& knowledge) {
  bool shape = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) &&
               text.find_first_not_of("0123456789.") == std::string::npos && text.back() != '.' &&
               !contains(text, "..") && text.size() <= 16;
  auto version = shape ? parse_version(text) : std::nullopt;
  if (!version || version->part(0) < 100 || version->part(0) > 9999 || version->parts.size() > 3)
    return fail(Code::usage,
                "--driver " + text +
                    ": expected a driver version such as 535.183.01, or a branch such as 535");
  std::vector<facts::CudaDevice> devices = facts.cuda.devices;
  forget_answers(facts, k_driver_option);
  forget_kernel_side(facts, k_driver_option);
  // A GPU that only CUDA showed (Jetson) stays known; what ran on it does not.
  for (facts::CudaDevice& device : devices) {
    forget(device.compute_check, k_driver_option);
    forget(device.compute_code, k_driver_option);
    forget(device.memory_test, k_driver_option);
    forget(device.memory_tested_bytes, k_driver_option);
  }
  facts.cuda.devices = std::move(devices);
  facts.kernel.version = known(text, SourceKind::assumed, "--driver");
  facts.nvml.driver_version = facts.kernel.version;
  if (auto cuda = knowledge.driver_cuda(*version)) {
    int encoded = int(cuda->part(0) * 1000 + cuda->part(1) * 10);
    facts.nvml.cuda_version = known(encoded, SourceKind::assumed, "--driver, data/drivers.toml");
  }
  // The described driver brings its own libraries; a cuda-compat that lies in front of them stays
  // there.
  auto& libraries = facts.driver_libraries;
  libraries.erase(std::remove_if(libraries.begin(), libraries.end(),
                                 [](const facts::DriverLibrary& library) {
                                   return library.origin != "compat";
                                 }),
                  libraries.end());
  return true;
}

}  // namespace

Result<facts::Facts> assume(facts::Facts facts, const WhatIf& what_if,
                            const knowledge::Knowledge& knowledge) {
  if (!what_if.gpus.empty()) {
    CUFIT_TRY(done, replace_gpus(facts, what_if.gpus, knowledge));
    (void)done;
  }
  if (!what_if.driver.empty()) {
    CUFIT_TRY(done, replace_driver(facts, what_if.driver, knowledge));
    (void)done;
  }
  return facts;
}

}  // namespace cufit::checks
