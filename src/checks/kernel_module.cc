// SPDX-License-Identifier: Apache-2.0
// Why is there no working kernel driver? One question with several answers that exclude each other,
// decided in the order in which removing the cause helps: no GPU, no driver, foreign driver on the
// GPU, module not built for this kernel, module rejected by Secure Boot, module present but not
// loaded.
#include "checks/machine_checks.h"

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

// Words of the kernel when a module's signature is missing or its key is unknown. "module
// verification failed" alone is no rejection: without enforcement the kernel says it and loads the
// module.
std::string signature_rejection(const facts::Facts& facts) {
  return log_line(
      facts, {"key was rejected by service", "required key not available",
              "loading of unsigned module is rejected", "unsigned module loading is restricted",
              "module with unavailable key is rejected", "loading of module with unavailable key"});
}

void add_gpu_arguments(const std::vector<const facts::PciGpu*>& gpus, const Input& input,
                       Finding& made) {
  std::string name;
  for (const GpuView& view : input.gpus) {
    if (view.pci == gpus.front()) name = view.name;
  }
  if (name.empty()) name = "10de:" + gpus.front()->device_id;
  made.args["gpu"] = name;
  made.args["address"] = gpus.front()->address;
  made.evidence.push_back({"file", "/sys/bus/pci/devices/" + gpus.front()->address, name});
}

std::vector<Finding> foreign_driver(const Input& input) {
  // A GPU handed to another driver on purpose (vfio-pci for a virtual machine) is a note; nouveau
  // is an accident.
  std::vector<Finding> findings;
  for (const facts::PciGpu* gpu : pci_gpus(input.facts)) {
    if (!gpu->driver || *gpu->driver == "nvidia") continue;
    const bool nouveau = *gpu->driver == "nouveau" || *gpu->driver == "nova_core";
    Finding made = finding("nouveau_conflict", nouveau ? Severity::error : Severity::note,
                           "GPU " + gpu->address);
    made.variant = nouveau ? "" : "other";
    add_gpu_arguments({gpu}, input, made);
    made.args["driver"] = *gpu->driver;
    made.args["kernel"] = input.facts.system.kernel.value_or("?");
    made.evidence.push_back(seen(gpu->driver));
    findings.push_back(std::move(made));
  }
  return findings;
}

// Distributions whose texts have a command of their own; "" = the general sentence.
std::string package_variant(const facts::Facts& facts) {
  const std::string id = facts.system.distribution_id.value_or("");  // "debian 12"
  const std::string name = id.substr(0, id.find(' '));
  return name == "debian" || name == "ubuntu" ? name : "";
}

Finding not_installed(const Input& input, const std::vector<const facts::PciGpu*>& gpus) {
  Finding made = finding("driver_not_installed", Severity::error, "machine");
  made.variant = in_container(input.facts) ? "container" : package_variant(input.facts);
  add_gpu_arguments(gpus, input, made);
  made.evidence.push_back(seen(input.facts.kernel.version));
  made.evidence.push_back(seen(input.facts.kernel.package_version));
  return made;
}

Finding not_loaded(const Input& input, const std::vector<const facts::PciGpu*>& gpus) {
  const facts::Facts& facts = input.facts;
  const std::string rejected = signature_rejection(facts);
  if (!rejected.empty()) {
    Finding made = finding("secure_boot_unsigned_module", Severity::error, "machine");
    made.args["module"] = facts.kernel.module_on_disk.value_or("nvidia");
    made.evidence.push_back(
        {to_string(facts.kernel.log.source.kind), facts.kernel.log.source.detail, rejected});
    made.evidence.push_back(seen(facts.system.secure_boot));
    add_gpu_arguments(gpus, input, made);
    return made;
  }
  if (facts.system.secure_boot && *facts.system.secure_boot && !facts.kernel.log) {
    Finding made =
        cannot_tell("secure_boot_unsigned_module", "machine", why_missing(facts.kernel.log));
    made.args["module"] = facts.kernel.module_on_disk.value_or("nvidia");
    made.evidence.push_back(seen(facts.system.secure_boot));
    made.evidence.push_back(seen(facts.kernel.module_on_disk));
    add_gpu_arguments(gpus, input, made);
    return made;
  }
  Finding made = finding("module_not_loaded", Severity::error, "machine");
  made.args["module"] = facts.kernel.module_on_disk.value_or("nvidia");
  made.evidence.push_back(seen(facts.kernel.version));
  made.evidence.push_back(seen(facts.kernel.module_on_disk));
  add_gpu_arguments(gpus, input, made);
  return made;
}

}  // namespace

std::vector<Finding> check_no_nvidia_gpu(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (!input.gpus.empty() || is_wsl(facts) || facts.system.jetson) return {};
  if (facts.cuda.device_count && *facts.cuda.device_count > 0) return {};
  for (const facts::DeviceNode& node : facts.kernel.nodes) {
    if (node.mode && starts_with(node.path, "/dev/nvidia")) return {};
  }
  if (facts.kernel.version || input.driver)
    return {};  // a loaded driver without a GPU is another question
  if (!facts.pci) {
    if (!failed(facts.pci)) return {};
    return {cannot_tell("no_nvidia_gpu", "machine", why_missing(facts.pci))};
  }
  Finding made = finding("no_nvidia_gpu", Severity::error, "machine");
  if (in_container(facts)) made.variant = "container";
  made.args["container"] = facts.system.container.value_or("none");
  made.evidence.push_back(seen(facts.pci.source, "10de: 0"));
  if (facts.system.other_gpu && made.variant.empty()) {
    made.variant = "amd";
    made.evidence.push_back(seen(facts.system.other_gpu));
  }
  return {made};
}

std::vector<Finding> check_kernel_module(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (is_wsl(facts) || facts.system.jetson) return {};
  if (facts.kernel.version) return foreign_driver(input);
  const std::vector<const facts::PciGpu*> gpus = pci_gpus(facts);
  if (gpus.empty() || input.driver) return {};
  if (failed(facts.kernel.version)) {
    return {cannot_tell("driver_not_installed", "machine", why_missing(facts.kernel.version))};
  }
  if (!absent(facts.kernel.version)) return {};  // nobody asked: a pasted text that does not say
  if (in_container(facts)) return {not_installed(input, gpus)};
  const bool installed = facts.kernel.package_version || facts.kernel.module_on_disk;
  if (!installed) {
    const Fact<std::string>& package = facts.kernel.package_version;
    if (failed(package))
      return {cannot_tell("driver_not_installed", "machine", why_missing(package))};
    return {not_installed(input, gpus)};
  }
  std::vector<Finding> foreign = foreign_driver(input);
  if (!foreign.empty()) return foreign;
  if (facts.kernel.nouveau_loaded.value_or(false)) {
    Finding made = finding("nouveau_conflict", Severity::error, "machine");
    add_gpu_arguments(gpus, input, made);
    made.args["driver"] = "nouveau";
    made.args["kernel"] = facts.system.kernel.value_or("?");
    made.evidence.push_back(seen(facts.kernel.nouveau_loaded));
    return {made};
  }
  if (absent(facts.kernel.module_on_disk)) {
    Finding made = finding("module_not_built_for_kernel", Severity::error, "machine");
    made.variant = package_variant(facts);
    made.args["kernel"] = facts.system.kernel.value_or("?");
    made.args["version"] = facts.kernel.package_version.value_or("?");
    made.evidence.push_back(seen(facts.kernel.package_version));
    made.evidence.push_back(seen(facts.kernel.module_on_disk));
    add_gpu_arguments(gpus, input, made);
    return {made};
  }
  if (!facts.kernel.module_on_disk) {
    return {cannot_tell("module_not_built_for_kernel", "machine",
                        why_missing(facts.kernel.module_on_disk))};
  }
  return {not_loaded(input, gpus)};
}

// The firmware gave the GPU no window into its memory: the driver loads, but cannot start the
// adapter.
std::vector<Finding> check_pci_resources(const Input& input) {
  std::vector<Finding> findings;
  const std::string line =
      log_line(input.facts, {"bar1 is 0m", "bar0 is 0m",
                             "this pci i/o region assigned to your nvidia device is invalid"});
  for (const facts::PciGpu* gpu : pci_gpus(input.facts)) {
    bool works = false;
    for (const GpuView& view : input.gpus)
      works = works || (view.pci == gpu && (view.nvml || view.cuda));
    const bool none = gpu->bar1_bytes && *gpu->bar1_bytes == 0;
    const bool said =
        !line.empty() && (contains(line, gpu->address) || pci_gpus(input.facts).size() == 1);
    if (works || (!none && !said)) continue;
    Finding made = finding("platform_pci_resources", Severity::error, "GPU " + gpu->address);
    add_gpu_arguments({gpu}, input, made);
    if (none) made.evidence.push_back(seen(gpu->bar1_bytes));
    if (said) made.evidence.push_back(seen(input.facts.kernel.log.source, line));
    findings.push_back(std::move(made));
  }
  return findings;
}

}  // namespace cufit::checks
