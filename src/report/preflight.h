// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit preflight`: one line, a second one for the next step, or JSON.
#pragma once

#include <string>
#include <vector>

#include "checks/finding.h"
#include "report/report.h"
#include "resolve/wheel/wheel_compatibility.h"

namespace cufit::report {

struct PreflightView {
  enum class Answer { good, not_ready, unknown } answer = Answer::unknown;
  bool machine_only = false;  // nothing was asked about an environment
  std::string env;            // folder; empty = none found
  std::string class_name;     // of a cufit.lock; empty = none asked
  std::string torch;          // "2.14.1+cu126"; empty = none
  std::string machine;        // "2x NVIDIA A800 80GB PCIe (8.0), driver 535.183.01"; in `lang`
  // Why not, whichever there is: rules of the policy, a finding, or a sentence in `lang`.
  const checks::Finding* cause = nullptr;
  size_t further_errors = 0;
  std::vector<resolve::Reason> forbidden;
  std::string said_id, said;
  std::string next;  // a command; empty = the finding's own
  const knowledge::Knowledge* knowledge = nullptr;
};

std::string preflight_text(const PreflightView& view, std::string_view lang);
std::string preflight_json(const PreflightView& view);  // schema cufit.preflight/1

}  // namespace cufit::report
