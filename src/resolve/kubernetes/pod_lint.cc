// SPDX-License-Identifier: Apache-2.0
#include "resolve/kubernetes/pod_lint.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

constexpr std::string_view k_nvidia = "nvidia.com/";
constexpr size_t k_most_said = 400;  // bytes of a value that a finding repeats

// Extended resources that are no GPU, by what stands before and behind the slash.
bool is_other_resource(const std::string& name) {
  if (contains(lower(name), "gpu") && contains(name, "/")) return false;
  if (!contains(name, "/")) return true;  // cpu, memory, ephemeral-storage, hugepages-2Mi
  for (const char* word : {"rdma", "hca", "sriov", "hugepages", "ephemeral", "efa", "hostdev",
                           "roce", "ib", "nic", "vpc", "kvm", "fuse"})
    if (contains(lower(name), word)) return true;
  return false;
}

void count_resource(const formats::PodResource& one, GpuAsk& out) {
  if (!is_gpu_resource(one.name)) {
    if (!is_other_resource(one.name) && whole_quantity(one.quantity) != uint64_t{0})
      out.unknown = true;
    return;
  }
  if (out.first == nullptr) out.first = &one;
  const std::optional<uint64_t> count = whole_quantity(one.quantity);
  if (!count)
    out.unknown = true;
  else
    (is_mig_resource(one.name) ? out.instances : out.whole) += *count;
}

// A text of a manifest as one line of a finding: YAML's block texts have line breaks.
std::string in_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!blank || (!out.empty() && out.back() != ' ')) out += blank ? ' ' : c;
  }
  return formats::printable(trim(out), k_most_said);
}

void keep_lines_whole(Lint& lint) {
  for (LintFinding& one : lint.findings) {
    for (checks::Evidence& evidence : one.finding.evidence)
      evidence.value = in_one_line(evidence.value);
    for (auto& [name, value] : one.finding.args) value = in_one_line(value);
  }
}

}  // namespace

bool is_mig_resource(const std::string& name) {
  return starts_with(name, std::string(k_nvidia) + "mig-");
}

bool is_gpu_resource(const std::string& name) {
  return name == "nvidia.com/gpu" || name == "nvidia.com/gpu.shared" || is_mig_resource(name);
}

std::optional<uint64_t> whole_quantity(const std::string& text) {
  const std::optional<double> value = formats::parse_quantity(text);
  if (!value || *value < 0 || *value > 1e6) return std::nullopt;
  const auto whole = static_cast<uint64_t>(*value);
  return static_cast<double>(whole) == *value ? std::optional<uint64_t>(whole) : std::nullopt;
}

GpuAsk gpus_asked(const formats::ManifestContainer& container) {
  GpuAsk out;
  out.unknown = container.claims;
  for (const formats::PodResource& one : container.limits) count_resource(one, out);
  for (const formats::PodResource& one : container.requests)
    if (std::none_of(container.limits.begin(), container.limits.end(),
                     [&](const formats::PodResource& limit) { return limit.name == one.name; }))
      count_resource(one, out);
  return out;
}

bool PodView::asks_gpu() const {
  return std::any_of(containers.begin(), containers.end(),
                     [](const ContainerView& one) { return one.gpus.any(); });
}

bool looks_after_gpus(const ContainerView& view) {
  if (view.pod.kind == "DaemonSet" || view.start.only_looks) return true;
  for (const formats::PodMount& mount : view.container.mounts)
    for (const formats::PodVolume& volume : view.pod.volumes)
      if (volume.name == mount.volume && volume.kind == formats::PodVolume::Kind::host_path &&
          (contains(volume.host_path, "/kubelet/") || contains(volume.host_path, "nvidia")))
        return true;
  return false;
}

const formats::PodVolume* volume_at(const formats::ManifestPod& pod,
                                    const formats::ManifestContainer& container,
                                    std::string_view path) {
  for (const formats::PodMount& mount : container.mounts) {
    std::string at = mount.path;
    while (at.size() > 1 && at.back() == '/') at.pop_back();
    if (at != path && !starts_with(path, at + "/")) continue;
    static const formats::PodVolume k_other;  // of a claim template, or one that is missing
    for (const formats::PodVolume& volume : pod.volumes)
      if (volume.name == mount.volume) return &volume;
    return &k_other;
  }
  return nullptr;
}

std::optional<uint64_t> memory_limit(const formats::ManifestContainer& container) {
  for (const formats::PodResource& one : container.limits)
    if (one.name == "memory")
      if (const std::optional<double> bytes = formats::parse_quantity(one.quantity);
          bytes && *bytes > 0 && *bytes < 1e18)
        return static_cast<uint64_t>(*bytes);
  return std::nullopt;
}

LintFinding& LintOut::add(const char* id, checks::Severity severity, size_t line,
                          const std::string& seen, const formats::ManifestContainer* container) {
  LintFinding out;
  out.finding.id = id;
  out.finding.severity = severity;
  out.file = file_;
  out.line = line;
  out.object = pod_->kind + (pod_->name.empty() ? "" : "/" + pod_->name);
  if (!pod_->role.empty()) out.object += " (" + pod_->role + ")";
  out.place = pod_->path;
  if (container != nullptr) {
    out.container = container->name;
    out.place = container->path;
  }
  out.finding.subject = out.object + (out.container.empty() ? "" : ", " + out.container);
  prove(out, line, seen);
  lint_.findings.push_back(std::move(out));
  return lint_.findings.back();
}

void LintOut::prove(LintFinding& finding, size_t line, const std::string& seen) const {
  finding.finding.evidence.push_back(
      {"file", format("{}:{}", input_.files[file_].path, line), seen});
}

void LintOut::not_judged(const std::string& id, std::map<std::string, std::string> args) {
  for (const Unjudged& one : lint_.unjudged)
    if (one.id == id && one.args == args) return;
  lint_.unjudged.push_back({id, std::move(args)});
}

Lint lint_manifests(const LintInput& input, const knowledge::Knowledge& knowledge) {
  Lint lint;
  LintOut out(input, lint);
  const ImageFits image(input, knowledge);
  for (size_t file = 0; file < input.files.size(); ++file)
    for (const formats::ManifestPod& pod : input.files[file].objects.pods) {
      PodView view{pod, {}};
      for (const formats::ManifestContainer& one : pod.containers)
        view.containers.push_back({pod, one, gpus_asked(one), read_start(one)});
      ++lint.pods;
      if (view.asks_gpu()) ++lint.gpu_pods;
      out.look_at(file, pod);
      lint_shape(view, out);
      lint_resources(view, out);
      lint_settings(view, input, image, out);
      lint_memory(view, out);
      lint_processes(view, out);
      lint_placement(view, input, knowledge, out);
      lint_image(view, input, image, out);
    }
  if (lint.gpu_pods > 0) {
    out.not_judged("runtime_class");
    if (input.nodes.empty()) out.not_judged("nodes");
    if (input.image == nullptr) {
      out.not_judged("image");
    } else if (!image.is_used()) {
      out.not_judged("image_unused", {{"image", input.image->image.path}});
    } else if (!image.has_torch()) {
      out.not_judged("image_no_torch", {{"image", input.image->image.path}});
    } else if (!input.nodes.empty() && image.fits().empty()) {
      out.not_judged("image_nodes");
    }
  }
  keep_lines_whole(lint);
  std::stable_sort(lint.findings.begin(), lint.findings.end(),
                   [](const LintFinding& a, const LintFinding& b) {
                     const auto key = [](const LintFinding& one) {
                       return std::tuple(-seriousness(one.finding.severity), one.file, one.line);
                     };
                     return key(a) < key(b);
                   });
  return lint;
}

}  // namespace cufit::resolve
