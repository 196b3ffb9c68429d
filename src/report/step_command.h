// SPDX-License-Identifier: Apache-2.0
// The command of a next step: what can be run as it stands. JSON says it beside `next`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "checks/finding.h"
#include "knowledge/knowledge.h"

namespace cufit::report {

// `en` and `zh` are one step in both languages: one that reads the same in both is a command as a
// whole. Commands that follow each other ("`a`, then `b`") are joined with "&&". Empty where the
// step is prose, begins with something that a person has to do or choose, holds a placeholder
// ("PACKAGE", "<index>"), or is code of another language.
std::optional<std::string> step_command(const std::string& en, const std::string& zh);

// The command changes the shell that reads it (`source`, `unset`): it does nothing in a script.
bool changes_its_shell(const std::string& command);

// The same as JSON: a string or null.
Json step_command_json(const std::string& en, const std::string& zh);
Json finding_command(const checks::Finding& finding, const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
