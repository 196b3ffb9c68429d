// SPDX-License-Identifier: Apache-2.0
// How a GPU is asked for: what the API server refuses, and what is taken and never given.
#include <algorithm>

#include "base/format.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

const formats::PodResource* find_resource(const std::vector<formats::PodResource>& list,
                                          const std::string& name) {
  for (const formats::PodResource& one : list)
    if (one.name == name) return &one;
  return nullptr;
}

std::string resource_seen(const formats::PodResource& one) {
  return one.name + ": " + one.quantity;
}

// A name as it may stand in YAML that is to be copied: letters, digits and marks of names alone.
bool is_plain_name(const std::string& name) {
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "./-") == std::string::npos;
}

std::string limit_lines(const std::string& name, const std::string& count) {
  return "resources:\n  limits:\n    " + name + ": " + count + "\n";
}

void requested_only(const formats::ManifestContainer& container, LintOut& out) {
  for (const formats::PodResource& request : container.requests) {
    if (!is_gpu_resource(request.name)) continue;
    const formats::PodResource* limit = find_resource(container.limits, request.name);
    const bool number = whole_quantity(request.quantity).has_value();
    if (limit == nullptr) {
      if (whole_quantity(request.quantity) == uint64_t{0}) continue;
      LintFinding& made = out.add("k8s_gpu_not_in_limits", Severity::error, request.line,
                                  resource_seen(request), &container);
      if (number && is_plain_name(request.name))
        made.yaml = limit_lines(request.name, request.quantity);
    } else if (formats::parse_quantity(limit->quantity) !=
               formats::parse_quantity(request.quantity)) {
      LintFinding& made = out.add("k8s_gpu_request_differs", Severity::error, request.line,
                                  "requests " + resource_seen(request), &container);
      out.prove(made, limit->line, "limits " + resource_seen(*limit));
      if (whole_quantity(limit->quantity) && is_plain_name(limit->name))
        made.yaml = limit_lines(limit->name, limit->quantity);
    }
  }
}

// Kubernetes counts GPUs in whole numbers; "500m" of cpu is no pattern for them.
void no_whole_number(const formats::ManifestContainer& container, LintOut& out) {
  for (const std::vector<formats::PodResource>* list : {&container.limits, &container.requests})
    for (const formats::PodResource& one : *list) {
      if (!is_gpu_resource(one.name) || whole_quantity(one.quantity)) continue;
      if (contains(one.quantity, "$")) continue;  // envsubst fills it in
      // Said of the limit is said of the request.
      if (list == &container.requests && find_resource(container.limits, one.name) != nullptr)
        continue;
      LintFinding& made = out.add("k8s_gpu_count_invalid", Severity::error, one.line,
                                  resource_seen(one), &container);
      made.finding.args["quantity"] = one.quantity;
      const std::optional<double> value = formats::parse_quantity(one.quantity);
      if (value && *value > 0 && *value < 1) made.finding.variant = "fraction";
      if (value && *value > 1e6) made.finding.variant = "many";  // "1Gi"
      if (is_plain_name(one.name)) made.yaml = limit_lines(one.name, "1");
    }
}

// Names that no device plugin ever offered, and that people write for nvidia.com/gpu.
void wrong_name(const formats::ManifestContainer& container, LintOut& out) {
  for (const std::vector<formats::PodResource>* list : {&container.limits, &container.requests})
    for (const formats::PodResource& one : *list) {
      const std::string low = lower(one.name);
      const bool wrong = low == "gpu" || low == "gpus" || low == "nvidia/gpu" ||
                         low == "nvidia.com/gpus" || low == "nvidia.com.gpu" ||
                         low == "alpha.kubernetes.io/nvidia-gpu" ||
                         (low == "nvidia.com/gpu" && one.name != low);
      if (!wrong) continue;
      if (list == &container.requests && find_resource(container.limits, one.name) != nullptr)
        continue;
      LintFinding& made = out.add("k8s_gpu_resource_name", Severity::error, one.line,
                                  resource_seen(one), &container);
      made.finding.args["name"] = one.name;
      const std::optional<uint64_t> count = whole_quantity(one.quantity);
      made.yaml = limit_lines("nvidia.com/gpu", std::to_string(count && *count > 0 ? *count : 1));
    }
}

// Shares of one GPU, or instances of which a program sees the first alone.
void more_than_one(const ContainerView& view, LintOut& out) {
  for (const formats::PodResource& one : view.container.limits) {
    const bool shared = starts_with(one.name, "nvidia.com/") && ends_with(one.name, ".shared");
    const bool mig = !shared && is_mig_resource(one.name) && !looks_after_gpus(view);
    if (mig && has_more_processes_than_instances(view)) continue;  // said of the processes
    if ((!shared && !mig) || whole_quantity(one.quantity).value_or(0) < 2) continue;
    LintFinding& made = out.add("k8s_shared_gpu_count", mig ? Severity::note : Severity::warning,
                                one.line, resource_seen(one), &view.container);
    made.finding.args["count"] = one.quantity;
    if (mig) made.finding.variant = "mig";
    if (is_plain_name(one.name)) made.yaml = limit_lines(one.name, "1");
  }
}

// The scheduler reserves the larger of what init containers ask one after the other and of what the
// others ask together, for as long as the pod lives.
void init_container_holds(const PodView& pod, LintOut& out) {
  uint64_t together = 0;
  for (const ContainerView& one : pod.containers) {
    if (one.gpus.unknown || one.gpus.instances > 0) return;
    if (!one.container.init || one.container.sidecar) together += one.gpus.whole;
  }
  for (const ContainerView& one : pod.containers) {
    if (!one.container.init || one.container.sidecar || one.gpus.whole <= together) continue;
    LintFinding& made = out.add("k8s_init_gpu", Severity::warning, one.gpus.first->line,
                                resource_seen(*one.gpus.first), &one.container);
    made.finding.args = {{"init", std::to_string(one.gpus.whole)},
                         {"rest", std::to_string(together)}};
    return;
  }
}

}  // namespace

void lint_resources(const PodView& pod, LintOut& out) {
  for (const ContainerView& one : pod.containers) {
    requested_only(one.container, out);
    no_whole_number(one.container, out);
    wrong_name(one.container, out);
    more_than_one(one, out);
  }
  if (!pod.pod.partial) init_container_holds(pod, out);
}

}  // namespace cufit::resolve
