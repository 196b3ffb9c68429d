// SPDX-License-Identifier: Apache-2.0
// WSL: the driver belongs to Windows, Linux sees /dev/dxg and the libraries that Windows puts into
// /usr/lib/wsl/lib.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

const facts::DriverLibrary* wsl_libcuda(const facts::Facts& facts) {
  for (const facts::DriverLibrary& library : facts.driver_libraries) {
    if (library.soname == "libcuda.so.1" && library.origin == "wsl") return &library;
  }
  return nullptr;
}

}  // namespace

std::vector<Finding> check_wsl(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (!is_wsl(facts) || cuda_works(facts)) return {};
  if (*facts.system.wsl == "1") {
    Finding made = finding("wsl_host_too_old", Severity::error, k_machine);
    made.variant = "wsl1";
    made.args["kernel"] = facts.system.kernel.value_or("?");
    made.evidence.push_back(seen(facts.system.wsl));
    return {made};
  }
  if (in_container(facts))
    return {};  // container_gpu.cc: /dev/dxg is the container's question there
  if (!exists(find_node(facts, "/dev/dxg"))) {
    if (facts.kernel.nodes.empty() && facts.driver_libraries.empty() && facts.origin == "dump")
      return {};
    Finding made = finding("wsl_host_too_old", Severity::error, k_machine);
    made.args["kernel"] = facts.system.kernel.value_or("?");
    made.evidence.push_back({"file", "/dev/dxg", "not_present"});
    made.evidence.push_back(seen(facts.system.kernel));
    return {made};
  }
  const facts::DriverLibrary* library = wsl_libcuda(facts);
  if (library == nullptr) {
    Finding made = finding("driver_not_installed", Severity::error, k_machine);
    made.variant = "wsl";
    made.args["gpu"] = "NVIDIA";
    made.args["address"] = "/dev/dxg";
    made.evidence.push_back({"file", "/usr/lib/wsl/lib/libcuda.so.1", "not_present"});
    return {made};
  }
  const facts::DriverLibrary* loaded = loaded_driver_library(facts, "libcuda.so.1");
  if (loaded == nullptr) {
    Finding made = finding("wsl_libcuda_not_found", Severity::error, k_machine);
    made.args["path"] = library->path;
    made.evidence.push_back({"file", library->path, library->version});
    made.evidence.push_back({"file", "libcuda.so.1", "not_present"});
    return {made};
  }
  return {};
}

}  // namespace cufit::checks
