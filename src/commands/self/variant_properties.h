// SPDX-License-Identifier: Apache-2.0
// `cufit self variant-properties`: what this machine says of itself to an installer that knows wheel
// variants.
#pragma once

#include "commands/self/self.h"

namespace cufit::commands {

int run_variant_properties(const Context& context, const SelfRequest& request);

}  // namespace cufit::commands
