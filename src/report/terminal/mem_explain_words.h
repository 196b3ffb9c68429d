// SPDX-License-Identifier: Apache-2.0
// Sentences of mem explain that its two views share, and the questions behind them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/mem_explain.h"

namespace cufit::report {

// The last finished step, where the instant lies in an evaluation after it.
std::optional<uint32_t> step_before_evaluation(const analysis::Diagnosis& diagnosis,
                                               const analysis::Instant& instant);
bool contradicts_itself(const MemExplainView& view);

struct Remark {
  std::string text;
  bool warns = false;
};
// How far the numbers can be believed, and which other devices the snapshot tells of.
std::vector<Remark> source_remarks(const MemExplainView& view, std::string_view lang);
// A recorded failure that the model would have served, one that the program survived, a limit that
// cannot have been.
std::vector<Remark> end_remarks(const MemExplainView& view, std::string_view lang);
// Row `index` of the advice; the first are the recorded settings.
std::string advice_words(const MemExplainView& view, size_t index, std::string_view lang);

}  // namespace cufit::report
