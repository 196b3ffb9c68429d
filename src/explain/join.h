// SPDX-License-Identifier: Apache-2.0
// What a text claims, completed by what a machine says (`--here`, `--from`): the text speaks of the
// run that failed, so its word goes first, and the machine fills what it leaves out.
#pragma once

#include <string>
#include <vector>

#include "host/facts.h"

namespace cufit::explain {

// What the text says of the run that failed, where the machine beside it is another one. (Another
// torch is none: a machine has several, and join() keeps the text's.)
struct Conflict {
  std::string what;  // "gpu", "driver"
  std::string text, beside;
};
// Of two machines nothing can be joined: each fact would be true and their sum of neither.
std::vector<Conflict> conflicts(const host::Facts& claimed, const host::Facts& machine);

host::Facts join(host::Facts claimed, const host::Facts& machine);

}  // namespace cufit::explain
