// SPDX-License-Identifier: Apache-2.0
#include "resolve/image/image_audit.h"

#include <algorithm>

#include "base/format.h"
#include "checks/doctor.h"
#include "resolve/image/image_audit_parts.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

// What the engine says of the environments; what it says of a machine is not about an image.
void engine_findings(const AuditInput& input, ImageAudit& out) {
  const checks::Report report = checks::examine(input.facts, input.knowledge);
  for (const checks::Finding& finding : report.findings) {
    const bool about_env = starts_with(finding.subject, "env ") || contains(finding.subject, "/");
    if (!about_env || finding.severity == Severity::unknown || finding.id == "torch_not_installed")
      continue;
    for (ImageTorch& torch : out.torches)
      if (finding.severity == Severity::error && torch.broken_by == ImageTorch::npos &&
          finding.subject == "env " + input.facts.envs[torch.env].path)
        torch.broken_by = out.findings.size();
    out.findings.push_back(finding);
  }
}

}  // namespace

std::vector<size_t> ImageAudit::served_by(size_t target) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < torches.size(); ++i)
    if (torches[i].broken_by == ImageTorch::npos &&
        (usable(torches[i].verdicts[target].fit) || torches[i].by_own_compat[target]))
      out.push_back(i);
  return out;
}

bool ImageAudit::keeps_rules() const {
  return !rules.empty() && std::all_of(rules.begin(), rules.end(), [](const ImageRule& rule) {
    return rule.state == RuleState::kept || rule.state == RuleState::absent ||
           (rule.state == RuleState::broken && rule.severity == Severity::note);
  });
}

void add_rules(ImageRules rules, ImageAudit& audit) {
  audit.rules = std::move(rules.rules);
  // At the end: torches name findings by their place.
  for (checks::Finding& finding : rules.findings) audit.findings.push_back(std::move(finding));
}

bool ImageAudit::serves(size_t target) const { return !served_by(target).empty(); }

bool ImageAudit::has_defects() const {
  for (const ImageDefect& defect : defects)
    if (defect.severity != Severity::note) return true;
  for (const checks::Finding& finding : findings)
    if (finding.severity == Severity::error || finding.severity == Severity::warning) return true;
  for (size_t i = 0; i < targets.size(); ++i)
    if (!serves(i)) return true;
  return false;
}

ImageAudit audit_image(const facts::OpenedImage& image, const facts::ImageTree& tree,
                       const facts::Facts& facts, std::vector<Target> targets,
                       const knowledge::Knowledge& knowledge) {
  const AuditInput input{image, tree, facts, knowledge};
  ImageAudit out;
  out.targets = std::move(targets);
  audit_libraries(input, out);
  audit_torches(input, out);
  engine_findings(input, out);
  audit_defects(input, out);
  return out;
}

}  // namespace cufit::resolve
