// SPDX-License-Identifier: Apache-2.0
// Small described machines for the tests of checks: a healthy one, changed by each test in one
// place.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "checks/check.h"
#include "checks/doctor.h"

namespace cufit::checks::world {

inline formats::DeviceCode cubin(std::string arch) {
  return {formats::CodeKind::cubin, std::move(arch), "", 100};
}
inline formats::DeviceCode ptx(std::string arch, std::string isa) {
  return {formats::CodeKind::ptx, std::move(arch), std::move(isa), 100};
}

template <class T>
Fact<T> file(T value, std::string path) {
  return known(std::move(value), SourceKind::file, std::move(path));
}

inline facts::NvmlGpu nvml_gpu(uint32_t index, std::string name, std::string cc) {
  facts::NvmlGpu gpu;
  gpu.index = index;
  gpu.name = known(std::move(name), SourceKind::nvml, "nvmlDeviceGetName");
  gpu.compute_capability =
      known(std::move(cc), SourceKind::nvml, "nvmlDeviceGetCudaComputeCapability");
  gpu.pci_address = known("0000:0" + std::to_string(index + 1) + ":00.0", SourceKind::nvml,
                          "nvmlDeviceGetPciInfo");
  return gpu;
}

inline facts::PciGpu pci_gpu(uint32_t index, std::string device) {
  facts::PciGpu gpu;
  gpu.address = "0000:0" + std::to_string(index + 1) + ":00.0";
  gpu.device_id = std::move(device);
  gpu.class_code = "0300";
  return gpu;
}

inline facts::PythonEnv torch_env(std::string release, std::string tag, std::string cuda,
                                  std::vector<formats::DeviceCode> code,
                                  std::string path = "/env") {
  facts::PythonEnv env;
  env.path = path;
  env.kind = "venv";
  env.active = true;
  env.installer = "pip";
  env.python = file<std::string>("3.12.3", "pyvenv.cfg");
  env.torch.path = path + "/lib/python3.12/site-packages/torch";
  env.torch.version = file(release + "+" + tag, env.torch.path + "/version.py");
  env.torch.variant = tag;
  env.torch.cuda = cuda.empty() ? missing<std::string>(WhyNot::not_present, SourceKind::file,
                                                       env.torch.path + "/version.py")
                                : file(cuda, env.torch.path + "/version.py");
  facts::Distribution package;
  package.name = "torch";
  package.version = release + "+" + tag;
  package.kind = "dist-info";
  package.installer = "pip";
  package.tag = "cp312-cp312-manylinux_2_28_x86_64";
  env.distributions = file(std::vector<facts::Distribution>{package}, path);
  if (!code.empty()) {
    facts::Binary library;
    library.path = "lib/python3.12/site-packages/torch/lib/libtorch_cuda.so";
    library.package = "torch";
    library.device_code = std::move(code);
    env.binaries.push_back(library);
  }
  return env;
}

inline facts::Binary extension(std::string package, std::string name,
                               std::vector<formats::DeviceCode> code = {}) {
  facts::Binary binary;
  binary.path = "lib/python3.12/site-packages/" + name;
  binary.package = std::move(package);
  binary.needed = {"libtorch.so", "libc10.so"};
  binary.device_code = std::move(code);
  return binary;
}

struct World {
  facts::Facts facts;
  World() {
    facts.origin = "recording";
    facts.system.architecture = file<std::string>("x86_64", "uname");
    facts.system.container = file<std::string>("none", "/.dockerenv");
    facts.pci = file(std::vector<facts::PciGpu>{}, "/sys/bus/pci/devices");
  }
  World& gpu(std::string name, std::string cc) {
    facts.nvml.gpus.push_back(
        nvml_gpu(uint32_t(facts.nvml.gpus.size()), std::move(name), std::move(cc)));
    return *this;
  }
  World& driver(const std::string& version) {
    facts.kernel.version = file(version, "/sys/module/nvidia/version");
    return *this;
  }
  World& env(facts::PythonEnv made) {
    facts.envs.push_back(std::move(made));
    return *this;
  }
  World& cuinit(int code) {
    facts.nvml.init_result = known(0, SourceKind::nvml, "nvmlInit_v2");
    facts.cuda.init_result = known(code, SourceKind::cuda, "cuInit");
    return *this;
  }
  World& libcuda(std::string origin, std::string version, std::vector<std::string> branches = {}) {
    facts::DriverLibrary library;
    library.soname = "libcuda.so.1";
    library.path = "/lib/" + origin + "/libcuda.so.1";
    library.version = std::move(version);
    library.origin = std::move(origin);
    library.loads = facts.driver_libraries.empty();
    library.found_by = "ld.so.cache";
    library.compat_cuda = "13.0";
    library.compat_drivers = std::move(branches);
    facts.driver_libraries.push_back(library);
    return *this;
  }
};

inline std::vector<Finding> run(Check check, const World& world) {
  Input input = make_input(world.facts, knowledge::Knowledge::builtin());
  return check(input);
}

// "id/severity/variant" of each finding, sorted: what most tests compare.
inline std::vector<std::string> brief(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& one : findings)
    texts.push_back(one.id + "/" + to_string(one.severity) +
                    (one.variant.empty() ? "" : "/" + one.variant));
  std::sort(texts.begin(), texts.end());
  return texts;
}

using Texts = std::vector<std::string>;

const std::vector<formats::DeviceCode> k_cu130 = {cubin("75"), cubin("80"),  cubin("86"),
                                                  cubin("90"), cubin("100"), cubin("120")};
const std::vector<formats::DeviceCode> k_cu126 = {
    cubin("50"), cubin("60"), cubin("70"), cubin("75"), cubin("80"), cubin("86"), cubin("90")};

}  // namespace cufit::checks::world
