// SPDX-License-Identifier: Apache-2.0
// Fills the templates of src/report/export/templates/. A template is the file itself plus lines of its own:
//   @each NAME ... @end      once per row of the list
//   @if NAME ... @end        where the value is there and not empty
//   @note KEY                message "export.KEY" in the user's language as comment lines ("# ...")
// and @name@ inside other lines. Values are put in as they are: whoever fills a Scope has escaped
// them for the file's format or checked that they are plain. What goes into a comment is made one
// line of printable text here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "knowledge/knowledge.h"

namespace cufit::report {

struct Scope {
  std::map<std::string, std::string> values;
  std::map<std::string, std::vector<Scope>> lists;
};

// The files of src/report/export/templates/ as they were when cufit was built; empty for an unknown name.
std::string_view export_template(std::string_view name);

// An unknown name or an unclosed block is a defect of the template: CUFIT_CHECK.
std::string fill_template(std::string_view text, const Scope& scope, std::string_view lang,
                          const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
