// SPDX-License-Identifier: Apache-2.0
// What torch's device code means for one GPU: the verdict that gpu_code.cc reports, mixed_gpus.cc
// compares between GPUs and chain.cc draws. Reads the file's entries; only where they are missing
// it asks the wheel table and says so.
#pragma once

#include "checks/code_match.h"
#include "checks/torch_env.h"

namespace cufit::checks {

struct TorchCode {
  std::vector<formats::DeviceCode> code;
  bool from_table = false;   // no readable file: data/wheels.toml spoke
  bool incomplete = false;   // the file is damaged: "none" is then not proven
  std::string where;         // path of the library, or the table with its row
  std::string why_not_file;  // with from_table or no code: what was missing
};
TorchCode torch_code_of(const Input& input, const facts::PythonEnv& env, const TorchBuild& build);

std::string list_archs(const std::vector<formats::DeviceCode>& code);  // "sm_75 sm_80 compute_120"

// GPUs of equal capability are judged once.
struct GpuGroup {
  ComputeCapability cc;
  std::vector<const GpuView*> gpus;
  std::string text() const;  // "GPU 0, 1 (NVIDIA H200, 9.0)"
};
std::vector<GpuGroup> group_gpus(const Input& input);

}  // namespace cufit::checks
