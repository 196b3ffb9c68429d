// SPDX-License-Identifier: Apache-2.0
// Words and names of alert rules, for built-in rules and a user's alike.
#pragma once

#include <optional>
#include <string_view>

#include "knowledge/knowledge.h"
#include "watch/alert_rules.h"

namespace cufit::watch {

std::optional<AlertTake> alert_take(std::string_view word);
const knowledge::MetricRow* find_metric(const knowledge::Knowledge& knowledge,
                                        std::string_view name);  // null: none
bool has_label(const knowledge::MetricRow& metric, std::string_view label);

}  // namespace cufit::watch
