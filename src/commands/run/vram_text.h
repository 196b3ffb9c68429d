// SPDX-License-Identifier: Apache-2.0
// The sentences of `cufit run --vram`.
#pragma once

#include <string>
#include <vector>

#include "commands/context.h"
#include "commands/run/vram_machine.h"

namespace cufit::commands {

// What was set in the end.
struct VramOutcome {
  std::vector<uint64_t> limits;  // of the cards; UINT64_MAX = none
  uint64_t every_bytes = 0;      // where no card is seen
  std::string share;             // empty = none
  bool guard = false, torch = false;
  enum class Mps {
    none,
    theirs,
    own,
    users_own
  } mps = Mps::none;          // users_own: the variable was set before
  bool asked = false;         // --by said what holds it
  bool joined_other = false;  // the shared domain in use has another limit
  std::vector<resolve::BackendVerdict> verdicts;

  const resolve::BackendVerdict& of(resolve::QuotaBackend backend) const {
    return verdicts[static_cast<size_t>(backend)];
  }
};

// The line that says what holds the limit; then warnings, which --quiet does not leave out.
void say_limit(const Context& context, const VramMachine& machine, const VramOutcome& outcome,
               bool quiet);
// Another's library between programs and the driver: two of them do not stack reliably.
void say_foreign(const Context& context, const std::vector<std::string>& variables);
// Why a back end is not possible.
std::string backend_why(const Context& context, const resolve::BackendVerdict& verdict);

}  // namespace cufit::commands
