// SPDX-License-Identifier: Apache-2.0
#include "checks/parts.h"

namespace cufit::checks {

std::vector<Chain> build_chains(const Input&, const std::vector<Finding>&) { return {}; }
LinkState judge_chain(const Chain&) { return LinkState::unknown; }

}  // namespace cufit::checks
