// SPDX-License-Identifier: Apache-2.0
// `--gpu NAME|GIB|all` of `cufit fit`.
#pragma once

#include <string>
#include <vector>

#include "fit/answer/cards.h"

namespace cufit::commands {

// In the order of the options, each card once; `all` adds every card of the table that torch still
// has kernels for and that has memory of its own, the smallest first. Error{usage} for a name that
// the table does not know.
Result<std::vector<fit::Card>> asked_cards(const std::vector<std::string>& gpus,
                                           const knowledge::Knowledge& knowledge);

}  // namespace cufit::commands
