// SPDX-License-Identifier: Apache-2.0
// The text of `python -m torch.utils.collect_env` (newest form), made from Facts without starting
// Python: same labels, order and blank lines, so that issue templates and parsers take it. What the
// real tool learns by running a program comes from files (lscpu's lines, gcc, cmake, nvcc, ldconfig
// -p) or is "Could not collect" (clang). One section `cufit:` stands at the end: verdict, findings,
// and which CUDA libraries torch would load.
//
// Where it differs: "Python version" has the number alone, without the build's date and compiler.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/report.h"

namespace cufit::report {

// Values under torch's internal field names, as printed; in the order of its text.
struct CollectEnv {
  std::string torch_version, is_debug_build, cuda_compiled_version, hip_compiled_version;
  std::string os, gcc_version, clang_version, cmake_version, libc_version;
  std::string python_version, python_platform, is_cuda_available, cuda_runtime_version,
      cuda_module_loading;
  std::string nvidia_gpu_models, nvidia_driver_version, cudnn_version, is_xpu_available;
  std::string hip_runtime_version, miopen_runtime_version, is_xnnpack_available,
      caching_allocator_config;
  std::vector<std::pair<std::string, std::string>> cpu_info;  // lscpu's label and value
  std::vector<std::string> pip_packages;                      // "torch==2.11.0"
  std::vector<std::string> conda_packages;                    // "pytorch 2.1.0 py3.11_cuda12.1"
  bool conda = false;                                         // the environment is one of conda
};

// Looks at the first environment of the facts (the active one, or the one given with --env).
CollectEnv collect_env(const facts::Facts& facts);
std::string collect_env_text(const DoctorView& view);
std::string collect_env_json(
    const DoctorView& view);  // collect_env_json.cc, schema cufit.collect_env/1

}  // namespace cufit::report
