// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit diff` for two locks and its two views.
#pragma once

#include <string>

#include "report/report.h"
#include "resolve/diff/lock_difference.h"

namespace cufit::report {

struct LockDiffView {
  const resolve::LockFile& a;
  const resolve::LockFile& b;
  const resolve::LockDifference& difference;
  const knowledge::Knowledge& knowledge;
  // Two pylock files: locks of one class each, which has no other facts.
  bool pylocks = false;
};

std::string lock_diff_text(const LockDiffView& view, const Style& style);
std::string lock_diff_json(
    const LockDiffView& view);  // schema cufit.diff/1, "compared": "locks" or "pylocks"

}  // namespace cufit::report
