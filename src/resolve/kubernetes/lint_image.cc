// SPDX-License-Identifier: Apache-2.0
// Does what is inside the image run on the GPUs and drivers of the nodes that the pod may land on?
#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/shell_word.h"
#include "resolve/image/image_audit.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

// "docker.io/library/team:1" and "team:1" are one; a tag that is not said is "latest".
std::string full_image(std::string name) {
  for (const char* start : {"docker.io/", "index.docker.io/", "library/", "localhost/"})
    if (starts_with(name, start)) name = name.substr(std::string_view(start).size());
  const size_t slash = name.rfind('/');
  const size_t after = slash == std::string::npos ? 0 : slash;
  if (name.find(':', after) == std::string::npos && name.find('@') == std::string::npos)
    name += ":latest";
  return name;
}

// "train:1" of "registry/team/train:1": what stays when an image is pushed to another place.
std::string last_name(const std::string& image) {
  const std::string full = full_image(image);
  const size_t slash = full.rfind('/', full.find('@'));
  return slash == std::string::npos ? full : full.substr(slash + 1);
}

// Another tag is another image; a digest alone does not say which.
bool same_last_name(const std::string& tag, const std::string& image) {
  const std::string a = last_name(tag), b = last_name(image);
  const size_t digest = b.find('@');
  if (digest == std::string::npos) return a == b;
  const std::string name = b.substr(0, digest);
  return name == (contains(name, ":") ? a : a.substr(0, a.find(':')));
}

// As doctor names it.
std::string finding_id(const Reason& reason, const ImageTorch& torch, const Target& target,
                       const knowledge::Knowledge& knowledge) {
  if (reason.id == "gpu_code" || reason.id == "gpu_ptx") {
    ComputeCapability newest{};
    for (const std::string& text : gpu_capabilities(torch.wheel, knowledge))
      if (const auto cc = parse_compute_capability(text); cc && newest < *cc) newest = *cc;
    const bool newer = std::any_of(target.gpus.begin(), target.gpus.end(),
                                   [&](const TargetGpu& gpu) { return newest < gpu.cc; });
    return newer ? "arch_gpu_too_new" : "arch_gpu_too_old";
  }
  for (const char* id : {"driver_too_old", "driver_minor", "driver_compat", "driver_for_gpu_old"})
    if (reason.id == id) return "driver_too_old";
  if (reason.id == "ptx_too_new") return "ptx_newer_than_driver";
  return "k8s_image_not_for_node";
}

// Lines that keep the pod on nodes whose GPUs are served, where discovery's product tells them apart.
// One more term beside those of an affinity would be one more way for the pod.
std::string product_lines(const formats::ManifestPod& pod,
                          const std::vector<const ImageFits::Fit*>& good,
                          const std::vector<const ImageFits::Fit*>& bad) {
  const auto products = [](const std::vector<const ImageFits::Fit*>& fits) {
    std::set<std::string> out;
    for (const ImageFits::Fit* fit : fits)
      if (const auto found = fit->node->labels.find("nvidia.com/gpu.product");
          found != fit->node->labels.end() && !found->second.empty())
        out.insert(found->second[0]);
    return out;
  };
  const std::set<std::string> served = products(good);
  for (const std::string& one : products(bad))
    if (served.count(one) > 0) return {};
  if (served.empty() || (!pod.affinity.empty() && served.size() > 1)) return {};
  if (!pod.affinity.empty())
    return "nodeSelector:\n  nvidia.com/gpu.product: " + *served.begin() + "\n";
  std::string out =
      "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n"
      "      nodeSelectorTerms:\n      - matchExpressions:\n        - key: nvidia.com/gpu.product\n"
      "          operator: In\n          values:\n";
  for (const std::string& one : served) out += "          - " + one + "\n";
  return out;
}

// A variable of the manifest goes before the image's; what envFrom brings is not known.
bool is_set_otherwise(const std::string& reason, const formats::ManifestContainer& container) {
  const bool capabilities = reason == "image_capabilities";
  if (!capabilities && reason != "image_require_cuda") return false;
  return container.variables_from ||
         std::any_of(container.variables.begin(), container.variables.end(),
                     [&](const formats::PodVariable& one) {
                       if (capabilities) return one.name == "NVIDIA_DRIVER_CAPABILITIES";
                       return one.name == "NVIDIA_DISABLE_REQUIRE" ||
                              starts_with(one.name, "NVIDIA_REQUIRE_");
                     });
}

// The step, and the lines with it. Another torch mends nothing that a setting of the image forbids.
void add_step(const formats::ManifestPod& pod, const ImageFits::Fit& first,
              const std::vector<const ImageFits::Fit*>& good,
              const std::vector<const ImageFits::Fit*>& bad, LintFinding& made) {
  const std::string& reason = first.reason.id;
  if (reason == "image_capabilities") {
    made.finding.variant = "manifest_capabilities";
    made.yaml = "env:\n- name: NVIDIA_DRIVER_CAPABILITIES\n  value: compute,utility\n";
  } else if (reason == "image_no_python") {
    made.finding.variant = "manifest_image";
  } else if (std::string lines = good.empty() ? "" : product_lines(pod, good, bad);
             !lines.empty()) {
    made.finding.variant = "manifest_some";
    made.place = pod.path;
    made.yaml = std::move(lines);
  } else if (reason == "image_require_cuda") {
    made.finding.variant = first.files_serve ? "manifest_require" : "manifest";
    if (first.files_serve) made.yaml = "env:\n- name: NVIDIA_DISABLE_REQUIRE\n  value: \"1\"\n";
  } else {
    made.finding.variant = first.resolve.empty() ? "manifest" : "manifest_resolve";
  }
}

std::string names_of(const std::vector<const ImageFits::Fit*>& fits) {
  std::string out;
  for (size_t i = 0; i < fits.size() && i < 6; ++i)
    out += (i == 0 ? "" : ", ") + fits[i]->node->name;
  return out + (fits.size() > 6 ? ", ..." : "");
}

}  // namespace

ImageFits::ImageFits(const LintInput& input, const knowledge::Knowledge& knowledge)
    : input_(input) {
  if (input.image == nullptr) return;
  std::set<std::string> images;
  for (const LintFile& file : input.files)
    for (const formats::ManifestPod& pod : file.objects.pods)
      for (const formats::ManifestContainer& one : pod.containers)
        if (!one.image.empty() && gpus_asked(one).any()) images.insert(one.image);
  if (images.size() == 1) only_image_ = *images.begin();
  std::vector<Target> targets;
  for (const ClusterNode& node : input.nodes)
    if (node.target) targets.push_back(*node.target);
  const ImageAudit audit = audit_image(input.image->image, input.image->tree, input.image->facts,
                                       std::move(targets), knowledge);
  has_torch_ = !audit.torches.empty();
  size_t target = 0;
  for (const ClusterNode& node : input.nodes) {
    if (!node.target) continue;
    Fit fit;
    fit.node = &node;
    fit.serves = audit.serves(target) || !has_torch_;
    if (!fit.serves) {
      // Of several environments the last one is not worse than the first.
      const ImageTorch& torch = audit.torches[0];
      const Verdict& verdict = torch.verdicts[target];
      // What is only not known is no finding.
      if (verdict.fit == cufit::resolve::Fit::unknown || verdict.reasons.empty()) {
        fit.serves = true;
      } else {
        fit.reason = verdict.reasons[0];
        fit.finding = finding_id(fit.reason, torch, *node.target, knowledge);
        fit.files_serve = usable(torch.files_alone[target]);
        fit.resolve = description_of(*node.target, knowledge);
      }
    }
    fits_.push_back(std::move(fit));
    ++target;
  }
}

bool ImageFits::is_of(const formats::ManifestContainer& container) const {
  if (input_.image == nullptr || container.image.empty()) return false;
  const std::vector<std::string>& tags = input_.image->image.tags;
  const std::string asked = full_image(container.image);
  const bool tagged = std::any_of(tags.begin(), tags.end(),
                                  [&](const std::string& tag) { return full_image(tag) == asked; });
  const bool same_name =
      tags.empty() || std::any_of(tags.begin(), tags.end(), [&](const auto& tag) {
        return same_last_name(tag, container.image);
      });
  return tagged || (same_name && container.image == only_image_);
}

bool ImageFits::is_used() const {
  for (const LintFile& file : input_.files)
    for (const formats::ManifestPod& pod : file.objects.pods)
      for (const formats::ManifestContainer& one : pod.containers)
        if (is_of(one)) return true;
  return false;
}

void lint_image(const PodView& pod, const LintInput& input, const ImageFits& image, LintOut& out) {
  if (image.fits().empty() || !pod.asks_gpu()) return;
  const std::vector<const ClusterNode*> possible = possible_nodes(pod, input);
  for (const ContainerView& one : pod.containers) {
    if (!one.gpus.any() || !image.is_of(one.container)) continue;
    std::vector<const ImageFits::Fit*> good, bad;
    for (const ImageFits::Fit& fit : image.fits())
      if (std::find(possible.begin(), possible.end(), fit.node) != possible.end())
        (fit.serves || is_set_otherwise(fit.reason.id, one.container) ? good : bad).push_back(&fit);
    if (bad.empty()) continue;
    LintFinding& made =
        out.add(bad[0]->finding.c_str(), good.empty() ? Severity::error : Severity::warning,
                one.container.line, "image: " + one.container.image, &one.container);
    for (size_t i = 0; i < bad.size() && i < 3; ++i)
      made.finding.evidence.push_back(
          {"file", bad[i]->node->source,
           gpus_text(*bad[i]->node->target) +
               (bad[i]->node->target->driver ? ", " + driver_text(*bad[i]->node->target->driver)
                                             : "")});
    made.reason = bad[0]->reason;
    made.finding.args = {{"image", one.container.image},
                         {"nodes", names_of(bad)},
                         {"good", names_of(good)},
                         {"for", bad[0]->resolve},
                         {"archive", shell_word(input.image->image.path)}};
    add_step(pod.pod, *bad[0], good, bad, made);
  }
}

}  // namespace cufit::resolve
