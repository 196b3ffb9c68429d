// SPDX-License-Identifier: Apache-2.0
// `--gpu` of `cufit pack` and `cufit mig plan`: this machine, a recording, a name or a size.
#pragma once

#include <string>
#include <vector>

#include "commands/command.h"
#include "facts/facts.h"
#include "fit/pack/pack_plan.h"

namespace cufit::commands {

// "HERE" (also where nothing is asked): the GPUs of this machine with what is free on them now, MIG
// instances in place of a GPU that is divided; the path of a recording: the same as it was there; a
// name, with "4x" before it for four; a size. Error{usage} for a name that the table does not know or
// that was sold with several sizes, and where a machine has no GPU.
Result<std::vector<pack::Gpu>> pack_gpus(const Context& context, std::vector<std::string> asked);

// The GPUs of one machine's facts, as for a recording; none where its driver tells no memory.
std::vector<pack::Gpu> gpus_of_machine(const facts::Facts& facts,
                                       const knowledge::Knowledge& knowledge);

}  // namespace cufit::commands
