// SPDX-License-Identifier: Apache-2.0
// Shared memory and the memory limit of a container.
#include <algorithm>

#include "base/format.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;
using Kind = formats::PodVolume::Kind;

constexpr uint64_t k_default_shm = uint64_t{64} << 20;  // of a container without a volume
constexpr const char* k_shm_lines =
    "containers:\n- name: {name}\n  volumeMounts:\n  - name: shm\n    mountPath: /dev/shm\n"
    "volumes:\n- name: shm\n  emptyDir:\n    medium: Memory\n    sizeLimit: {size}\n";

// Why a container fills more than the 64 MiB that it gets without a volume; empty = no sign of it.
std::string shm_reason(const ContainerView& view) {
  const StartCommand& start = view.start;
  if (start.workers > 0) return start.workers_text;
  if (start.processes && *start.processes > 1) return start.processes_text;
  if (start.one_per_gpu && view.gpus.visible().value_or(0) > 1) return start.processes_text;
  if (start.launcher == Launcher::deepspeed && !start.processes && !start.many_nodes &&
      view.gpus.visible().value_or(0) > 1)
    return "deepspeed";
  return {};
}

// No more than a container gets without a volume.
bool is_small(const formats::PodVolume& volume) {
  const std::optional<double> size = formats::parse_quantity(volume.size_limit);
  return !volume.size_limit.empty() && size && *size <= static_cast<double>(k_default_shm);
}

bool is_plain(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

// A quarter of the memory limit, at most 16 GiB: a bound that is only reached when it is used. It
// stays under the limit, however small that is.
std::string shm_size(const formats::ManifestContainer& container) {
  const uint64_t limit = memory_limit(container).value_or(uint64_t{64} << 30);
  const uint64_t size = std::max(limit / 4, std::min(k_default_shm * 2, limit / 2));
  if (size >> 30 > 0) return std::to_string(std::min<uint64_t>(size >> 30, 16)) + "Gi";
  return std::to_string(std::max<uint64_t>(size >> 20, 1)) + "Mi";
}

void shared_memory(const ContainerView& view, LintOut& out) {
  const formats::ManifestPod& pod = view.pod;
  const formats::ManifestContainer& container = view.container;
  if (!view.gpus.any() || pod.partial || pod.ray || pod.host_ipc_line != 0 || container.init)
    return;
  const std::string reason = shm_reason(view);
  const formats::PodVolume* volume = volume_at(pod, container, "/dev/shm");
  const bool small = volume != nullptr && volume->kind == Kind::memory && is_small(*volume) &&
                     memory_limit(container).value_or(UINT64_MAX) > 2 * k_default_shm;
  if (reason.empty() || (volume != nullptr && volume->kind != Kind::disk && !small)) return;
  const size_t line = volume != nullptr ? volume->line : container.command_line;
  LintFinding& made = out.add("host_shm", Severity::warning, line,
                              small               ? "sizeLimit: " + volume->size_limit
                              : volume != nullptr ? "emptyDir"
                                                  : reason,
                              &container);
  made.finding.args["words"] = reason;
  made.finding.variant = small               ? "manifest_small"
                         : volume != nullptr ? "manifest_disk"
                                             : "manifest";
  if (small) made.finding.args["size"] = volume->size_limit;
  if (volume != nullptr) {
    made.place = pod.path + ".volumes";
    made.yaml = "emptyDir:\n  medium: Memory\n  sizeLimit: " + shm_size(container) + "\n";
    return;
  }
  made.place = pod.path;
  if (!is_plain(container.name)) return;
  made.yaml = k_shm_lines;
  made.yaml.replace(made.yaml.find("{name}"), 6, container.name);
  made.yaml.replace(made.yaml.find("{size}"), 6, shm_size(container));
}

// What lies in an emptyDir of memory counts into the limit of the container that wrote it.
void shm_over_limit(const ContainerView& view, LintOut& out) {
  const formats::PodVolume* volume = volume_at(view.pod, view.container, "/dev/shm");
  if (volume == nullptr || volume->kind != Kind::memory || volume->size_limit.empty()) return;
  const std::optional<uint64_t> limit = memory_limit(view.container);
  const std::optional<double> size = formats::parse_quantity(volume->size_limit);
  if (!limit || !size || *size < static_cast<double>(*limit)) return;
  LintFinding& made = out.add("k8s_shm_over_memory_limit", Severity::warning, volume->line,
                              "sizeLimit: " + volume->size_limit, &view.container);
  for (const formats::PodResource& one : view.container.limits)
    if (one.name == "memory") out.prove(made, one.line, "memory: " + one.quantity);
  made.finding.args = {{"size", volume->size_limit}, {"limit", format_bytes(*limit)}};
  made.place = view.pod.path + ".volumes";
  made.yaml = "emptyDir:\n  medium: Memory\n  sizeLimit: " + shm_size(view.container) + "\n";
}

// Advice: files that are mapped (safetensors) may be dropped from memory while they are read, what
// torch.load reads may not.
void model_over_limit(const ContainerView& view, LintOut& out) {
  const std::optional<uint64_t> limit = memory_limit(view.container);
  if (!limit || view.start.model_bytes == 0 || *limit >= view.start.model_bytes) return;
  if (!view.gpus.any()) return;
  // Each pod loads a part.
  if (view.start.many_nodes || view.pod.ray || view.pod.kind == "LeaderWorkerSet") return;
  size_t line = view.container.resources_line;
  std::string seen;
  for (const formats::PodResource& one : view.container.limits)
    if (one.name == "memory") {
      line = one.line;
      seen = "memory: " + one.quantity;
    }
  LintFinding& made =
      out.add("k8s_memory_limit_small", Severity::note, line, seen, &view.container);
  made.finding.args = {{"limit", format_bytes(*limit)},
                       {"model", view.start.model},
                       {"size", format_bytes(view.start.model_bytes)}};
  const uint64_t enough = (view.start.model_bytes + (view.start.model_bytes / 5)) / (1u << 30) + 1;
  made.yaml = format("resources:\n  limits:\n    memory: {}Gi\n", enough);
}

}  // namespace

void lint_memory(const PodView& pod, LintOut& out) {
  for (const ContainerView& one : pod.containers) {
    shared_memory(one, out);
    shm_over_limit(one, out);
    model_over_limit(one, out);
  }
}

}  // namespace cufit::resolve
