// SPDX-License-Identifier: Apache-2.0
#include "report/explain.h"

namespace cufit::report {

std::string explain_text(const ExplainView& view, const Style& style) {
  std::string out;
  for (const explain::Cause& cause : view.explanation.causes)
    out += std::string(to_string(cause.confidence)) + ": " +
           cause_text(cause, "title", style.lang, view.knowledge) + "\n";
  return out;
}

}  // namespace cufit::report
