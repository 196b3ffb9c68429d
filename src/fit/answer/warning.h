// SPDX-License-Identifier: Apache-2.0
// What is said beside an answer, without a sentence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cufit::fit {

// Text: "fit.warning.<id>" with the arguments, and the line of the program that it is about.
struct Warning {
  std::string id;
  std::map<std::string, std::string> args;
  std::string source;                       // "train.py:57"; empty: none
  std::map<std::string, uint64_t> sizes{};  // further arguments, in bytes
  bool operator==(const Warning&) const = default;
};

// Adds those that `list` does not have. Sizes of batches are told once, not for each batch size.
void add_warnings(std::vector<Warning>& list, std::vector<Warning> more);

}  // namespace cufit::fit
