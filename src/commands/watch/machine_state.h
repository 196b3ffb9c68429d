// SPDX-License-Identifier: Apache-2.0
// What `cufit exporter` and `cufit watch` say of a machine beside its samples: quotas, the bus, versions of the driver.
#pragma once

#include "commands/context.h"
#include "watch/metrics.h"

namespace cufit::commands {

class MachineStateReader {
 public:
  explicit MachineStateReader(const Context& context);

  // Quotas as they are now; the rest anew each minute. Files alone are read: a few milliseconds, whatever the driver does.
  const watch::MachineState& read();

 private:
  void read_driver();

  const Context& context_;
  watch::MachineState state_;
  bool sees_all_gpus_ = true;  // no container
  double read_at_ = 0;
};

}  // namespace cufit::commands
