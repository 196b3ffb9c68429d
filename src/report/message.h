// SPDX-License-Identifier: Apache-2.0
// The one look-up of a text of data/messages.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "knowledge/knowledge.h"

namespace cufit::report {

// `text` with each {name} replaced by its argument; "{{" and "}}" are braces. A name without an
// argument stays as it is.
std::string format_message(std::string_view text, const std::map<std::string, std::string>& args);

// The text of `key` ("run.start.missing") in a language, with its arguments filled in. Empty where
// there is none.
std::string message(const knowledge::Knowledge& knowledge, std::string_view key,
                    std::string_view lang, const std::map<std::string, std::string>& args = {});

}  // namespace cufit::report
