// SPDX-License-Identifier: Apache-2.0
// /dev/nvidia*: are the nodes there, and may this process open them? Asks nothing where CUDA
// already answered.
//
// The tie-breakers of containers: no GPU option at all is container_no_gpu_requested, a GPU option
// without libcuda is container_driver_capabilities (both container_gpu.cc); here libcuda is present
// and a node is absent, or the node is there and the container's device rules forbid it.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

bool open_to_all(const facts::DeviceNode& node) {
  return node.mode && node.mode->size() >= 9 && ends_with(*node.mode, "rw-");
}

Evidence seen_node(const facts::DeviceNode& node) {
  std::string value = node.mode ? *node.mode : std::string(to_string(node.mode.why));
  if (node.mode && !node.usable) value += ", not usable";
  return {"file", node.path, std::move(value)};
}

std::vector<std::string> missing_nodes(const facts::Facts& facts) {
  std::vector<std::string> missing;
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) {
    if (!exists(find_node(facts, path))) missing.push_back(path);
  }
  bool any_gpu = false;
  for (const facts::DeviceNode& node : facts.kernel.nodes)
    any_gpu = any_gpu || (is_gpu_node(node.path) && node.mode);
  if (!any_gpu) missing.push_back("/dev/nvidia0");
  return missing;
}

// Nodes that exist and that this process may not open. The cause differs: a mode without rw for
// others is a matter of groups; rw for everybody and still refused is the container's device list
// (cgroup).
std::vector<Finding> refused(const Input& input) {
  const facts::Facts& facts = input.facts;
  std::vector<const facts::DeviceNode*> nodes;
  for (const facts::DeviceNode& node : facts.kernel.nodes) {
    const bool matters =
        is_gpu_node(node.path) || node.path == "/dev/nvidiactl" || node.path == "/dev/nvidia-uvm";
    if (matters && node.mode && !node.usable && !is_kept_from_this_job(facts, node))
      nodes.push_back(&node);
  }
  if (nodes.empty()) return {};
  const bool device_rules = in_container(facts) && open_to_all(*nodes.front());
  Finding made = finding(device_rules ? "container_cgroup_devices_lost" : "dev_nodes_no_permission",
                         Severity::error, in_container(facts) ? "container" : k_machine);
  std::vector<std::string> paths;
  for (const facts::DeviceNode* node : nodes) {
    paths.push_back(node->path);
    made.evidence.push_back(seen_node(*node));
  }
  made.args["nodes"] = short_list(paths);
  made.args["node"] = nodes.front()->path;
  made.args["mode"] = nodes.front()->mode.value_or("?");
  made.args["container"] = facts.system.container.value_or("none");
  // A group that may write, and that is not root's: joining it is the step.
  const std::string& mode = nodes.front()->mode.value_or("");
  const std::string& group = nodes.front()->group;
  if (!in_container(facts) && mode.size() >= 6 && mode.substr(4, 2) == "rw" && !group.empty() &&
      group != "root" && group != "0") {
    made.variant = "group";
    made.args["group"] = group;
  }
  return {made};
}

}  // namespace

std::vector<Finding> check_device_nodes(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (cuda_works(facts) || is_wsl(facts) || is_jetson(facts)) return {};
  if (!facts.kernel.version || facts.kernel.nodes.empty())
    return {};  // no driver, or a text that lists no nodes
  std::vector<Finding> findings = refused(input);
  if (!findings.empty()) return findings;

  const facts::DriverLibrary* libcuda = loaded_driver_library(facts, "libcuda.so.1");
  const std::vector<std::string> missing = missing_nodes(facts);
  if (!missing.empty()) {
    // Without libcuda a container was not given the GPU at all: container_gpu.cc says so.
    if (in_container(facts) && (libcuda == nullptr || missing.size() == 3)) return {};
    const bool answered = facts.cuda.init_result.value.has_value();
    Finding made;
    if (answered || in_container(facts)) {
      made = finding("dev_nodes_missing", Severity::error,
                     in_container(facts) ? "container" : k_machine);
      made.variant = in_container(facts) ? "container" : "";
    } else {
      // On a host nvidia-modprobe makes the nodes when the first program asks, and no program
      // asked.
      made = cannot_tell("dev_nodes_missing", k_machine, why_missing(facts.cuda.init_result));
    }
    made.args["nodes"] = join(missing, ", ");
    for (const std::string& path : missing) made.evidence.push_back({"file", path, "not_present"});
    made.evidence.push_back(seen(facts.cuda.init_result));
    return {made};
  }
  // Every node is there and may be opened, NVML still answers 999: the device rules were rewritten
  // under the container.
  if (in_container(facts) && facts.nvml.init_result && *facts.nvml.init_result == 999) {
    Finding made = finding("container_cgroup_devices_lost", Severity::error, "container");
    made.args["nodes"] = "/dev/nvidia*";
    made.args["node"] = "/dev/nvidiactl";
    made.args["mode"] = "";
    made.args["container"] = facts.system.container.value_or("none");
    made.evidence.push_back(seen(facts.nvml.init_result));
    return {made};
  }
  return {};
}

}  // namespace cufit::checks
