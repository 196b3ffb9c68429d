// SPDX-License-Identifier: Apache-2.0
// A next step with its arguments filled in: what comes from outside (paths, names of packages,
// variables, devices) is quoted for the shell wherever it stands in a command to copy, so that no
// text of data/findings has to.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cufit::report {

// As format_message(), with `whole` where all of `text` is a command; else its commands stand
// between backticks. In prose, a backtick of an argument becomes a quote: it would begin a command.
// Arguments that are commands (or options) already are taken as they are.
std::string fill_step(std::string_view text, const std::map<std::string, std::string>& args,
                      bool whole);

}  // namespace cufit::report
