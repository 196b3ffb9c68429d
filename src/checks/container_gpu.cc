// SPDX-License-Identifier: Apache-2.0
// Was this container given a GPU? Decided by what lies in it, not by NVIDIA_VISIBLE_DEVICES: CUDA
// base images set that variable to "all" whether or not a GPU was requested.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

// libcuda that came from the host's driver: neither a toolkit's stub nor the image's compat
// package.
const facts::DriverLibrary* host_library(const facts::Facts& facts, std::string_view soname) {
  for (const facts::DriverLibrary& library : facts.driver_libraries) {
    if (library.soname == soname && (library.origin == "driver" || library.origin == "wsl"))
      return &library;
  }
  return nullptr;
}

bool any_node(const facts::Facts& facts) {
  for (const facts::DeviceNode& node : facts.kernel.nodes) {
    const bool gpu =
        is_gpu_node(node.path) || node.path == "/dev/nvidiactl" || node.path == "/dev/dxg";
    if (gpu && node.mode) return true;
  }
  return false;
}

bool host_has_gpu(const Input& input) {
  return input.facts.kernel.version || input.driver || !pci_gpus(input.facts).empty() ||
         is_wsl(input.facts);
}

std::string run_option(const std::string& container) {
  if (container == "kubernetes" || container == "apptainer" || container == "podman")
    return container;
  return "";  // the default text is docker's
}

}  // namespace

std::vector<Finding> check_container_gpu(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (!in_container(facts) || cuda_works(facts) || !host_has_gpu(input)) return {};
  if (!is_wsl(facts) && !facts.kernel.version && !input.driver)
    return {};  // the host's driver is not loaded
  const facts::DriverLibrary* libcuda = host_library(facts, "libcuda.so.1");
  const std::string visible = variable(facts, "NVIDIA_VISIBLE_DEVICES");
  if (!any_node(facts)) {
    if (libcuda != nullptr && has_variable(facts, "NVIDIA_VISIBLE_DEVICES") && visible != "void" &&
        visible != "none" &&
        libcuda->version == (facts.kernel.version ? *facts.kernel.version : "")) {
      // The right libraries were injected, every node is absent.
      Finding made = finding("dev_nodes_missing", Severity::error, "container");
      made.variant = "container";
      made.args["nodes"] = "/dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia0";
      made.evidence.push_back({"file", "/dev/nvidiactl", "not_present"});
      made.evidence.push_back({"file", libcuda->path, libcuda->version});
      return {made};
    }
    Finding made = finding("container_no_gpu_requested", Severity::error, "container");
    made.variant = run_option(*facts.system.container);
    made.args["container"] = *facts.system.container;
    made.args["driver"] = facts.kernel.version.value_or(input.driver ? input.driver->text() : "?");
    made.evidence.push_back(seen(facts.system.container));
    made.evidence.push_back({"file", is_wsl(facts) ? "/dev/dxg" : "/dev/nvidiactl", "not_present"});
    if (facts.kernel.version) made.evidence.push_back(seen(facts.kernel.version));
    if (visible == "void" || visible == "none")
      made.evidence.push_back({"env", "NVIDIA_VISIBLE_DEVICES", visible});
    return {made};
  }
  if (libcuda != nullptr) return {};
  Finding made = finding("container_driver_capabilities", Severity::error, "container");
  const std::string capabilities = variable(facts, "NVIDIA_DRIVER_CAPABILITIES");
  const facts::DriverLibrary* nvml = host_library(facts, "libnvidia-ml.so.1");
  // Nodes without any library: handed in by hand (--device), not by the NVIDIA toolkit.
  if (nvml == nullptr && !contains(capabilities, "utility")) made.variant = "devices_only";
  made.args["capabilities"] = capabilities.empty() ? "utility" : capabilities;
  made.args["container"] = *facts.system.container;
  made.evidence.push_back({"file", "libcuda.so.1", "not_present"});
  if (nvml != nullptr) made.evidence.push_back({"file", nvml->path, nvml->version});
  if (has_variable(facts, "NVIDIA_DRIVER_CAPABILITIES"))
    made.evidence.push_back({"env", "NVIDIA_DRIVER_CAPABILITIES", capabilities});
  return {made};
}

}  // namespace cufit::checks
