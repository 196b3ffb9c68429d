// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit explain` and its two views.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "explain/explain.h"
#include "report/report.h"

namespace cufit::report {

struct ExplainView {
  const explain::Explanation& explanation;
  const knowledge::Knowledge& knowledge;
  bool hint = true;   // on the options of `cufit explain`
  bool here = false;  // the facts of a machine are joined
  bool all = false;   // every cause and all evidence: a file has room
  // Where the rest is that a screen has no room for: message "part.<more>" of report.toml.
  const char* more = "more";
};

std::string explain_text(const ExplainView& view, const Style& style);  // explain_text.cc
// explain_json.cc, schema cufit.explain/1, English texts
std::string explain_json(const ExplainView& view);
Json explain_value(const ExplainView& view);  // the same, to be put into another

// Text of a cause: finding_text(), less the sentences whose numbers only a check could fill in
// ("title", "why", "next", "rule", "decide"). May be empty.
std::string cause_text(const explain::Cause& cause, std::string_view part, std::string_view lang,
                       const knowledge::Knowledge& knowledge);
// docs/causes.md: every cause that a text can show or a question can decide, in both languages.
std::string causes_page(const knowledge::Knowledge& knowledge);  // causes_page.cc

// What a clue says in words; its id when the tables do not know it.
std::string clue_text(std::string_view clue, std::string_view lang,
                      const knowledge::Knowledge& knowledge);

// What a line of evidence says beyond itself (EvidenceLine::fact), as the messages "explain.fact"
// word it; unchanged where they have no such pattern.
std::string fact_text(const std::string& fact, std::string_view lang,
                      const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
