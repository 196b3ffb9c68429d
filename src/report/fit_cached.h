// SPDX-License-Identifier: Apache-2.0
// A kept answer of `cufit fit`, said again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/report.h"

namespace cufit::report {

struct CachedCard {
  std::string name;
  uint64_t needs = 0;   // of PyTorch's allocator, a safe upper value
  uint64_t usable = 0;  // for it
  bool fits() const { return needs <= usable; }
};

struct FitCachedView {
  const Json& answer;  // cufit.fit/1
  int64_t made = 0;    // seconds since 1970
  size_t files = 0;    // that were looked at
  std::vector<CachedCard> cards;
  const knowledge::Knowledge& knowledge;
};

std::string fit_cached_text(const FitCachedView& view, const Style& style);
std::string fit_cached_json(const FitCachedView& view);  // schema cufit.fit/1 with `cached`
// No answer is kept: cufit.fit/1 with `error`, kind "not_cached".
std::string fit_not_cached_json(const std::string& program, const std::string& why);

}  // namespace cufit::report
