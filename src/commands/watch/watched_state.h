// SPDX-License-Identifier: Apache-2.0
// What samples do not say of this machine (watch/metrics.h): quotas, GPUs on the bus, the driver's two versions.
#pragma once

#include "commands/context.h"
#include "watch/metrics.h"

namespace cufit::commands {

class WatchedState {
 public:
  explicit WatchedState(const Context& context) : context_(context) {}
  // Read again where it is older than 10 s.
  const watch::MachineState& at(double now, const std::string& library_version);

 private:
  const Context& context_;
  watch::MachineState state_;
  double read_at_ = -1e9;
};

}  // namespace cufit::commands
