// SPDX-License-Identifier: Apache-2.0
// Memory of this machine's GPUs that is free and yet given away: what started launches of `cufit run --wait` and the limits of
// `cufit run --vram` in use may still take.
#pragma once

#include <vector>

#include "commands/context.h"
#include "fit/pack/pack_plan.h"

namespace cufit::commands {

// Takes it from `usable` of the GPUs, which have their UUID as `visible`, and says so in one line.
void take_promised(const Context& context, std::vector<pack::Gpu>& gpus);

}  // namespace cufit::commands
