// SPDX-License-Identifier: Apache-2.0
// One maker per link of a chain. A link says the best thing that is proven when no finding speaks
// against it; chain.cc then lets the findings have the last word.
#pragma once

#include <optional>

#include "checks/gpu_code.h"

namespace cufit::checks {

// What all links of one chain are about. `gpu` is null on a machine without GPU, `env` without
// torch.
struct LinkCase {
  const Input& input;
  const GpuView* gpu = nullptr;
  const facts::PythonEnv* env = nullptr;
  TorchBuild build;
  TorchCode code;
};

Link gpu_link(const LinkCase& c);            // chain_driver.cc
Link kernel_driver_link(const LinkCase& c);  // chain_driver.cc
Link user_driver_link(const LinkCase& c);    // chain_driver.cc
std::optional<Link> cuda_runtime_link(
    const LinkCase& c);                                 // chain_torch.cc; none without a CUDA build
std::optional<Link> libraries_link(const LinkCase& c);  // chain_torch.cc
Link torch_link(const LinkCase& c);                     // chain_torch.cc
std::optional<Link> extensions_link(const LinkCase& c);  // chain_torch.cc
std::optional<Link> container_link(const LinkCase& c);   // chain_driver.cc; only inside one

Link make_link(const char* name, LinkState state, const char* message_case);

}  // namespace cufit::checks
