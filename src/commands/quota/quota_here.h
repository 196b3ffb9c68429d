// SPDX-License-Identifier: Apache-2.0
// What `cufit quota plan` and `cufit quota status` know of this machine.
#pragma once

#include "commands/command.h"
#include "facts/facts.h"
#include "resolve/quota/quota_machine.h"

namespace cufit::commands {

// Facts with NVML's state of each GPU, without a compute check.
facts::Facts quota_facts(const Context& context);
// Of these, and of what facts do not hold: the controllers that are there, a server of MPS, the guard's switch.
resolve::QuotaMachine quota_machine_here(const Context& context, const facts::Facts& facts);

}  // namespace cufit::commands
