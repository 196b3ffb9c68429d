// SPDX-License-Identifier: Apache-2.0
// Why nothing fits, in the fewest words: the smallest set of demands that no wheel meets together.
#pragma once

#include <string>
#include <vector>

#include "resolve/wheel/resolve.h"

namespace cufit::resolve {

// Of the rejected choices' reasons. Every wheel violates at least one demand of the set, and the
// set is of the least size: a smallest hitting set. Demands as texts: "torch<2.4", "Python 3.9",
// "driver 470.82.01", "GeForce GTX 1080 (6.1)", "policy cuda", "glibc 2.17", "default index only".
std::vector<std::string> smallest_conflict(const Answer& answer);

}  // namespace cufit::resolve
