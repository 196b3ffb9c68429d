// SPDX-License-Identifier: Apache-2.0
// What `cufit watch` alarms on: the rows of data/alert_rules.toml as a program judges them, and a user's file that changes
// them or adds to them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/toml_text.h"
#include "knowledge/knowledge.h"

namespace cufit::watch {

enum class AlertTake { now, increase, rate, avg, min, max };

struct AlertTerm {  // take(metric[window])
  std::string metric;
  AlertTake take = AlertTake::now;
  double window_s = 0;  // 0 for `now`
};

struct AlertTest {  // term / over compare threshold
  AlertTerm term;
  std::optional<AlertTerm> over;
  std::string label;  // on both sides, where both have it; empty: all series
  std::vector<std::string> values;
  bool above = true;
  double threshold = 0;
};

struct AlertTexts {  // {names} are labels of the alert, {value} what the first test gives
  std::string summary, description;
};

// All tests hold for one GPU. The first gives an alert its labels and its value.
struct WatchRule {
  std::string id, severity;  // "critical", "warning", "info"
  std::string show;          // of {value}: "count", "percent", "bytes", "duration", "number"
  std::string runbook;       // a command that says more
  double hold_s = 0;         // that the tests must hold before it fires
  AlertTexts en, zh;
  std::vector<AlertTest> tests;

  const AlertTexts& texts(std::string_view lang) const { return lang == "zh" ? zh : en; }
};

constexpr size_t k_most_rules = 200, k_most_tests = 8;
constexpr double k_longest_window_s = 24 * 3600;

// Without the rules over metrics that Prometheus makes itself (`up`).
std::vector<WatchRule> alert_rules(const knowledge::Knowledge& knowledge);

// The same, changed by a file of `[[rule]]` tables: `id` names a built-in rule, of which the other keys replace something
// (`enabled = false` turns it off, `threshold` is that of its first condition), or a new one. Error{malformed} names file and
// line.
Result<std::vector<WatchRule>> alert_rules(const knowledge::Knowledge& knowledge,
                                           const formats::TomlDocument& changes);

}  // namespace cufit::watch
