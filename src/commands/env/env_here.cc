// SPDX-License-Identifier: Apache-2.0
// Which environments of a lock are made for the machine that `env check` runs on.
#include "commands/env/env.h"
#include "commands/run/run_choice.h"
#include "commands/run/find_live_target.h"

namespace cufit::commands {

std::vector<bool> classes_for_here(const resolve::LockFile& lock, const host::Host& machine,
                                   const knowledge::Knowledge& knowledge) {
  std::vector<bool> out(lock.classes.size(), true);
  if (lock.classes.size() < 2) return out;
  using Sight = resolve::LiveTarget::Sight;
  const resolve::LiveTarget live = find_live_target(machine, {}, knowledge);
  if (live.sight != Sight::gpus && live.sight != Sight::none) return out;
  const resolve::Routing routing = resolve::route(lock, live.target, knowledge);
  for (size_t i = 0; i < out.size(); ++i) out[i] = routing.verdicts[i].fit != resolve::Fit::no;
  return out;
}

}  // namespace cufit::commands
