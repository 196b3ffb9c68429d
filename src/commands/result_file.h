// SPDX-License-Identifier: Apache-2.0
// A result never takes the place of what it was made from.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace cufit::commands {

// Error{usage} where `result` and `input` are the same file, also by a link. Either may be absent.
Result<void> not_the_input(const std::optional<std::string>& result,
                           const std::optional<std::string>& input);

}  // namespace cufit::commands
