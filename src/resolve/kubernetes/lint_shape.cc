// SPDX-License-Identifier: Apache-2.0
// What no API server takes, whatever the values are.
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {

void lint_shape(const PodView& pod, LintOut& out) {
  using Kind = formats::ManifestFault::Kind;
  static const char* const k_variants[] = {"repeated",          "no_list", "no_map",
                                           "outside_resources", "no_text", "job_restart"};
  for (const formats::ManifestFault& one : pod.pod.faults) {
    const bool restart = one.kind == Kind::job_restart;
    const bool said = restart && !pod.pod.restart_policy.empty();
    const std::string seen = one.key + ":" + (said ? " " + pod.pod.restart_policy : std::string());
    LintFinding& made = out.add("k8s_manifest_refused", checks::Severity::error, one.line,
                                restart && !said ? pod.pod.path : seen);
    made.finding.variant = k_variants[static_cast<size_t>(one.kind)];
    made.finding.args["key"] = one.key;
    if (!one.path.empty()) made.place = one.path;
    if (restart) made.yaml = "restartPolicy: Never\n";
  }
}

}  // namespace cufit::resolve
