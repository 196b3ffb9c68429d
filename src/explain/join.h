// SPDX-License-Identifier: Apache-2.0
// What a text claims, completed by what a machine says (`--here`, `--from`): the text speaks of the
// run that failed, so its word goes first, and the machine fills what it leaves out.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"

namespace cufit::explain {

// What the text says of the run that failed, where the machine beside it is another one. (Another
// torch is none: a machine has several, and join() keeps the text's.)
struct Conflict {
  std::string what;  // "gpu", "driver"
  std::string text, beside;
};
// Of two machines nothing can be joined: each fact would be true and their sum of neither.
std::vector<Conflict> conflicts(const facts::Facts& claimed, const facts::Facts& machine);

facts::Facts join(facts::Facts claimed, const facts::Facts& machine);

}  // namespace cufit::explain
