// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit k8s lint` and its two views.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"
#include "resolve/kubernetes/pod_lint.h"

namespace cufit::report {

struct LintView {
  const resolve::LintInput& input;
  const resolve::Lint& lint;
  std::vector<std::string> problems;  // what could not be read: file, line, what
  const knowledge::Knowledge& knowledge;
};

std::string lint_text(const LintView& view, const Style& style);  // terminal/k8s_lint_text.cc
std::string lint_json(const LintView& view);  // json/k8s_lint_json.cc, schema cufit.k8s.lint/1

// The finding with {reason} filled in, in one language.
checks::Finding with_reason(const resolve::LintFinding& finding, std::string_view lang,
                            const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
