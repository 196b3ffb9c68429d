// SPDX-License-Identifier: Apache-2.0
// Which facts of two machines differ, the ones that decide most often first. A table says for each
// field how much it weighs and whether it differs between any two machines anyway.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "resolve/diff/flat_facts.h"
#include "resolve/diff/package_difference.h"

namespace cufit::resolve {

// In the order in which they decide; the names are those of the JSON and of data/messages.
enum class Topic {
  driver,
  gpu,
  torch,
  python,
  platform,
  cuda_libraries,
  variables,
  container,
  other,
};
const char* to_string(Topic topic);

enum class Weight {
  matters,   // worth a look
  implied,   // follows from another difference that is listed
  expected,  // differs between any two machines: addresses, serial numbers, temperatures
};
const char* to_string(Weight weight);

struct FactChange {
  Topic topic = Topic::other;
  Weight weight = Weight::matters;
  std::string field;                // as in ListedFact
  std::vector<std::string> keys;    // elements that differ in the same way; empty without brackets
  std::optional<std::string> a, b;  // nullopt = not there
  std::vector<std::string> places_a, places_b;
  int rank = 0;  // place in the table
};

// A fact that one side tells and the other could not read: no difference and no agreement.
struct OneSided {
  std::string field, key;
  std::string value;               // of the side that tells it
  bool in_a = false;               // the side that tells it
  WhyNot why = WhyNot::not_asked;  // of the other side
  std::string note;
  bool decides = false;  // of a field that the table knows
};

struct FactComparison {
  std::vector<FactChange> changes;  // by rank
  std::vector<OneSided> one_sided;
};

struct FactSide {
  std::vector<ListedFact> facts;
  bool complete = true;  // false: from a pasted text, where what is not listed is merely not told
  bool container = false;
};

FactComparison compare_facts(const FactSide& a, const FactSide& b,
                             const std::vector<PackageChange>& packages);

}  // namespace cufit::resolve
