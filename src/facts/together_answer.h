// SPDX-License-Identifier: Apache-2.0
// The answer of python/cufit_together: the JSON object of its last line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/facts.h"

namespace cufit::facts {

// `printed`: all that the program wrote to stdout; `tried`: the Python that ran it, for the sources.
// `left` gets the processes that could not be ended.
// Error{malformed}: there is no such line, or it is none of this program's.
Result<TogetherFacts> parse_together_answer(std::string_view printed, const std::string& tried,
                                            std::vector<std::string>& left);

}  // namespace cufit::facts
