// SPDX-License-Identifier: Apache-2.0
// `conditions` of a rule in a user's file (docs/watch.md).
#pragma once

#include <vector>

#include "knowledge/knowledge.h"
#include "watch/alert_rules.h"
#include "watch/rule_fields.h"

namespace cufit::watch {

Result<std::vector<AlertTest>> read_conditions(const knowledge::Knowledge& knowledge,
                                               const RuleFields& fields,
                                               const formats::TomlValue& list);

}  // namespace cufit::watch
