// SPDX-License-Identifier: Apache-2.0
// A reader of a damaged file returns what it could read plus a list of these: a report with a hole
// is worth more than no report.
#pragma once

#include <cstdint>
#include <string>

namespace cufit::formats {

struct Damage {
  uint64_t offset = 0;  // byte in the file (line number for texts)
  std::string what;     // one sentence without the file's name
};

}  // namespace cufit::formats
