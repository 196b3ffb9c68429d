// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit diff` and its two views. Locks: diff_lock.h.
#pragma once

#include <string>

#include "report/report.h"
#include "resolve/diff/machine_difference.h"

namespace cufit::report {

struct DiffSide {
  std::string name;  // as given: "good.json", "here", "/opt/venv"
  std::string kind;  // "here", "environment", "recording", "text"
  const resolve::MachineSide& machine;
};

struct DiffView {
  const DiffSide& a;
  const DiffSide& b;
  const resolve::MachineDifference& difference;
  const knowledge::Knowledge& knowledge;
};

std::string diff_text(const DiffView& view, const Style& style);  // diff_text.cc
std::string diff_json(const DiffView& view);                      // schema cufit.diff/1

}  // namespace cufit::report
