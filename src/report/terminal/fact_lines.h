// SPDX-License-Identifier: Apache-2.0
// All facts as lines: path of the field, value or why it is missing, and where it was read. For
// `-v` and for the page; walks facts/facts_fields.h, so a new fact appears here by itself.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"

namespace cufit::report {

struct FactLine {
  std::string path;     // "nvml.gpus[0].name"
  std::string value;    // empty with `missing`
  std::string missing;  // "no_permission"
  // "file"; empty for plain fields, which belong to the fact that lists them
  std::string source_kind;
  std::string source;  // "/sys/module/nvidia/version"
  std::string note;    // of a missing fact
};

// Fields with their default value are left out, as are facts that nobody asked for.
std::vector<FactLine> fact_lines(const facts::Facts& facts);

}  // namespace cufit::report
