// SPDX-License-Identifier: Apache-2.0
// Variables and rights of a container that uses GPUs.
#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

constexpr const char* k_one_gpu = "resources:\n  limits:\n    nvidia.com/gpu: 1\n";

// A share of a GPU that a scheduler of its own gives out by annotation (KAI, Run:ai, HAMi).
bool shares_by_annotation(const formats::ManifestPod& pod) {
  return std::any_of(pod.annotations.begin(), pod.annotations.end(), [](const std::string& name) {
    return contains(lower(name), "gpu") || contains(lower(name), "nvidia");
  });
}

// NVIDIA's words for "no GPU": container-toolkit, NVIDIA_VISIBLE_DEVICES.
bool is_none(const std::string& value) {
  return value.empty() || value == "void" || value == "none";
}

void visible_by_hand(const ContainerView& view, LintOut& out) {
  const formats::PodVariable* one = find_variable(view.container, "NVIDIA_VISIBLE_DEVICES");
  if (one == nullptr || looks_after_gpus(view)) return;
  const bool hides = is_none(*one->value);
  if (!view.gpus.any() && (hides || view.container.privileged_line != 0)) return;
  LintFinding& made = out.add("k8s_visible_devices_by_hand", Severity::warning, one->line,
                              variable_seen(*one), &view.container);
  made.finding.args["value"] = *one->value;
  if (view.gpus.any()) {
    made.finding.variant = hides ? "hides" : "with_limit";
  } else if (!view.pod.partial) {
    made.yaml = k_one_gpu;
  }
}

void needs_gpu(const ContainerView& view, LintOut& out) {
  if (view.gpus.any() || view.start.needs_gpu.empty() || view.pod.partial) return;
  if (looks_after_gpus(view) || view.container.privileged_line != 0) return;
  if (shares_by_annotation(view.pod)) return;
  // Its command runs in the workers, or a cluster of pods has the GPUs.
  if (lower(view.pod.role) == "launcher") return;
  const bool serves = view.start.needs_gpu == to_string(view.start.launcher) &&
                      view.start.launcher != Launcher::nvidia_smi;
  if (serves && (view.pod.ray || view.pod.kind == "LeaderWorkerSet")) return;
  if (find_variable(view.container, "NVIDIA_VISIBLE_DEVICES") != nullptr) return;
  LintFinding& made = out.add("container_no_gpu_requested", Severity::warning,
                              view.container.command_line, view.start.needs_gpu, &view.container);
  made.finding.args = {{"words", view.start.needs_gpu}};
  made.finding.variant = serves ? "manifest_serves" : "manifest";
  made.yaml = k_one_gpu;
}

// Numbers count the GPUs of the container, whatever they are called on the node. A script may hide
// all GPUs from one of its commands.
void chosen_gpus(const ContainerView& view, const std::string& value, size_t line,
                 const std::string& seen, bool in_script, LintOut& out) {
  const std::optional<uint64_t> gpus = view.gpus.visible();
  if (!gpus) return;
  std::string bad;
  bool first = true, some_seen = false;  // what stands before the bad number is seen
  for (const std::string_view part : split(value, ',')) {
    const std::optional<uint64_t> number = parse_uint(trim(part));
    if (number && *number >= *gpus && bad.empty()) {
      bad = std::string(trim(part));
      some_seen = !first;
    }
    first = false;
  }
  const bool hides =
      !in_script && (value.empty() || value == "-1" || value == "none" || value == "NoDevFiles");
  if (bad.empty() && !hides) return;
  LintFinding& made =
      out.add("cuda_visible_devices", hides || some_seen ? Severity::warning : Severity::error,
              line, seen, &view.container);
  out.prove(made, view.gpus.first->line, view.gpus.first->name + ": " + view.gpus.first->quantity);
  made.finding.variant = hides ? "manifest_hides" : "manifest";
  made.finding.args = {{"value", value},
                       {"bad", bad},
                       {"count", std::to_string(*gpus)},
                       {"last", std::to_string(*gpus - 1)}};
}

void cuda_visible(const ContainerView& view, LintOut& out) {
  if (const formats::PodVariable* one = find_variable(view.container, "CUDA_VISIBLE_DEVICES"))
    chosen_gpus(view, std::string(trim(*one->value)), one->line, variable_seen(*one), false, out);
  constexpr size_t k_most_said = 4;
  for (size_t i = 0; i < view.start.devices.size() && i < k_most_said; ++i)
    chosen_gpus(view, view.start.devices[i], view.container.command_line,
                "CUDA_VISIBLE_DEVICES=" + view.start.devices[i], true, out);
}

// Without "compute" the runtime does not mount libcuda; programs that show or encode pictures need
// none.
void driver_capabilities(const ContainerView& view, LintOut& out) {
  const formats::PodVariable* one = find_variable(view.container, "NVIDIA_DRIVER_CAPABILITIES");
  if (one == nullptr || !view.gpus.any() || !view.start.computes) return;
  const std::string value(trim(*one->value));
  if (value.empty() || contains(value, "$")) return;
  for (const std::string_view part : split(value, ','))
    if (trim(part) == "compute" || trim(part) == "all") return;
  LintFinding& made = out.add("container_driver_capabilities", Severity::warning, one->line,
                              variable_seen(*one), &view.container);
  made.finding.variant = "manifest";
  made.finding.args = {{"capabilities", value}, {"container", view.container.name}};
  made.yaml = "env:\n- name: NVIDIA_DRIVER_CAPABILITIES\n  value: compute,utility\n";
}

void rights(const PodView& pod, LintOut& out) {
  const ContainerView* first = nullptr;
  for (const ContainerView& one : pod.containers) {
    if (!one.gpus.any() || looks_after_gpus(one)) continue;
    if (first == nullptr) first = &one;
    if (one.container.privileged_line != 0 && one.gpus.first != nullptr) {
      LintFinding& made =
          out.add("k8s_privileged_gpu", Severity::warning, one.container.privileged_line,
                  "privileged: true", &one.container);
      made.finding.args["count"] = one.gpus.first->quantity;
      made.yaml = "securityContext:\n  privileged: false\n";
    }
  }
  if (first == nullptr) return;
  for (const auto& [line, word] : {std::pair<size_t, const char*>{pod.pod.host_pid_line, "hostPID"},
                                   {pod.pod.host_ipc_line, "hostIPC"}}) {
    if (line == 0) continue;
    LintFinding& made =
        out.add("k8s_host_namespace", Severity::note, line, std::string(word) + ": true");
    made.finding.variant = line == pod.pod.host_ipc_line ? "ipc" : "pid";
    made.finding.args["field"] = word;
  }
}

// A pod by itself that ends is started again, also after it ended well; a training run from its
// beginning, one that ran out of memory for ever.
void restarts(const PodView& pod, LintOut& out) {
  if (pod.pod.kind != "Pod") return;
  if (!pod.pod.restart_policy.empty() && pod.pod.restart_policy != "Always") return;
  for (const ContainerView& one : pod.containers) {
    const Launcher launcher = one.start.launcher;
    if (one.container.init || launcher == Launcher::vllm || launcher == Launcher::tgi ||
        launcher == Launcher::sglang || one.start.stays)
      continue;
    const bool trains = launcher == Launcher::none && !one.start.trains.empty() && one.gpus.any();
    if (launcher == Launcher::none && !trains) continue;
    const std::string program = trains ? one.start.trains : to_string(launcher);
    const size_t line =
        pod.pod.restart_line != 0 ? pod.pod.restart_line : one.container.command_line;
    LintFinding& made =
        out.add("k8s_restart_loop", Severity::warning, line,
                pod.pod.restart_line != 0 ? "restartPolicy: Always" : program, &one.container);
    made.finding.args["program"] = program;
    made.place = pod.pod.path;
    made.yaml = "restartPolicy: Never\n";
    return;
  }
}

}  // namespace

std::string variable_seen(const formats::PodVariable& one) {
  return one.name + "=" + one.value.value_or("");
}

const formats::PodVariable* find_variable(const formats::ManifestContainer& container,
                                          std::string_view name) {
  const formats::PodVariable* out = nullptr;
  for (const formats::PodVariable& one : container.variables)
    if (one.name == name) out = &one;
  return out != nullptr && out->value ? out : nullptr;
}

void lint_settings(const PodView& pod, const LintInput& input, const ImageFits& image,
                   LintOut& out) {
  for (const ContainerView& one : pod.containers) {
    visible_by_hand(one, out);
    needs_gpu(one, out);
    cuda_visible(one, out);
    driver_capabilities(one, out);
    lint_library_path(one, input, image, out);
  }
  rights(pod, out);
  restarts(pod, out);
}

}  // namespace cufit::resolve
