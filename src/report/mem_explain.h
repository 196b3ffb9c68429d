// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit mem explain` and its two views.
#pragma once

#include <string>

#include "memory/analysis/diagnosis.h"
#include "report/report.h"

namespace cufit::report {

struct MemExplainView {
  const std::string& file;
  const memory::Snapshot& snapshot;
  const memory::VerifiedRecording& verified;
  const analysis::Diagnosis& diagnosis;
  const knowledge::Knowledge& knowledge;
  bool limit_is_written = false;  // the limit is the one that `cufit mem record` wrote down
};

std::string mem_explain_text(const MemExplainView& view, const Style& style);
std::string mem_explain_json(const MemExplainView& view);  // schema cufit.mem.explain/1

// What the recording says against the limit that was named: "below_held", "above_refused" or
// nothing.
const char* limit_warning(const analysis::Diagnosis& diagnosis);

// One line of evidence in words.
std::string evidence_words(const analysis::EvidenceItem& item, std::string_view lang,
                           const knowledge::Knowledge& knowledge);
// A part ("title", "why", "next", "decide") of a cause's texts.
std::string mem_cause_text(const analysis::Cause& cause, std::string_view part,
                           std::string_view lang, const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
