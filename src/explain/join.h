// SPDX-License-Identifier: Apache-2.0
// What a text claims, completed by what a machine says (`--here`, `--from`): the text speaks of the
// run that failed, so its word goes first, and the machine fills what it leaves out.
#pragma once

#include "host/facts.h"

namespace cufit::explain {

host::Facts join(host::Facts claimed, const host::Facts& machine);

}  // namespace cufit::explain
