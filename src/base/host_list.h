// SPDX-License-Identifier: Apache-2.0
// Names of many machines as Slurm writes them: "gpu[001-004,7],login1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit {

// At most 65,536 names, in the order of the text; "rack[1-2]n[01-16]" has 32. Nested brackets and
// ranges that run backwards are Error{usage} that names the part.
Result<std::vector<std::string>> expand_host_list(std::string_view text);

// Runs of names that differ in one number: {"gpu001", "gpu002", "login"} -> "gpu[001-002],login",
// {"n9", "n10"} -> "n[9-10]". Ascending by their numbers and distinct.
std::string host_list(std::vector<std::string> names);

}  // namespace cufit
