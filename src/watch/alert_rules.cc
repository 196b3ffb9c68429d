// SPDX-License-Identifier: Apache-2.0
#include "watch/alert_rules.h"

#include <algorithm>

#include "base/duration.h"
#include "base/format.h"
#include "watch/alert_words.h"

namespace cufit::watch {
namespace {

AlertTerm built_in_term(std::string_view metric, std::string_view take, std::string_view window) {
  const std::optional<AlertTake> known = alert_take(take);
  CUFIT_CHECK(known, "a condition of alert_rules.toml takes something unknown");
  AlertTerm out{std::string(metric), *known, 0};
  if (!window.empty()) out.window_s = static_cast<double>(parse_duration(window).value_or(0));
  return out;
}

AlertTest built_in_test(const knowledge::AlertCondition& row) {
  AlertTest out;
  out.term = built_in_term(row.metric, row.take, row.window);
  if (!row.over.empty()) out.over = built_in_term(row.over, row.over_take, row.over_window);
  out.label = row.label;
  if (!row.values.empty())
    for (const std::string_view value : split(row.values, ' ')) out.values.emplace_back(value);
  out.above = row.compare == ">";
  out.threshold = row.threshold;
  return out;
}

}  // namespace

std::optional<AlertTake> alert_take(std::string_view word) {
  constexpr std::pair<std::string_view, AlertTake> k_words[] = {
      {"now", AlertTake::now}, {"increase", AlertTake::increase}, {"rate", AlertTake::rate},
      {"avg", AlertTake::avg}, {"min", AlertTake::min},           {"max", AlertTake::max}};
  for (const auto& [name, take] : k_words)
    if (name == word) return take;
  return std::nullopt;
}

const knowledge::MetricRow* find_metric(const knowledge::Knowledge& knowledge,
                                        std::string_view name) {
  for (const knowledge::MetricRow& row : knowledge.metrics)
    if (row.name == name) return &row;
  return nullptr;
}

bool has_label(const knowledge::MetricRow& metric, std::string_view label) {
  const std::vector<std::string_view> all = split(metric.labels, ' ');
  return std::find(all.begin(), all.end(), label) != all.end();
}

std::vector<WatchRule> alert_rules(const knowledge::Knowledge& knowledge) {
  std::vector<WatchRule> out;
  for (const knowledge::AlertRule& row : knowledge.alert_rules) {
    WatchRule rule;
    rule.id = row.id;
    rule.severity = row.severity;
    rule.show = row.show;
    rule.runbook = row.runbook;
    rule.hold_s = static_cast<double>(parse_duration(row.hold).value_or(0));
    rule.en = {std::string(row.summary), std::string(row.description)};
    rule.zh = {std::string(row.summary_zh), std::string(row.description_zh)};
    bool judged = true;
    for (const knowledge::AlertCondition& condition : knowledge.alert_conditions) {
      if (condition.rule != row.id) continue;
      judged = judged && find_metric(knowledge, condition.metric) != nullptr;
      rule.tests.push_back(built_in_test(condition));
    }
    if (judged && !rule.tests.empty()) out.push_back(std::move(rule));
  }
  return out;
}

}  // namespace cufit::watch
