// SPDX-License-Identifier: Apache-2.0
// data/alert_rules.toml says each rule twice: as PromQL and as conditions for a program. The PromQL
// that the conditions make must be the rule's, so that Prometheus and `cufit watch` agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "knowledge/knowledge.h"

namespace cufit::knowledge {
namespace alert_rules_test {

const Knowledge& tables() { return Knowledge::builtin(); }

const MetricRow* find_metric(std::string_view name) {
  for (const MetricRow& row : tables().metrics)
    if (row.name == name) return &row;
  return nullptr;
}

std::vector<std::string_view> labels_of(std::string_view metric) {
  const MetricRow* row = find_metric(metric);
  return row == nullptr || row->labels.empty() ? std::vector<std::string_view>()
                                               : split(row->labels, ' ');
}

bool has_label(std::string_view metric, std::string_view label) {
  if (metric == "up") return true;
  const std::vector<std::string_view> all = labels_of(metric);
  return std::find(all.begin(), all.end(), label) != all.end();
}

std::string side(std::string_view metric, const AlertCondition& row, std::string_view take,
                 std::string_view window) {
  static const std::map<std::string_view, std::string> k_functions = {{"now", ""},
                                                                      {"increase", "increase"},
                                                                      {"rate", "rate"},
                                                                      {"avg", "avg_over_time"},
                                                                      {"min", "min_over_time"},
                                                                      {"max", "max_over_time"}};
  std::string out(metric);
  if (!row.label.empty() && has_label(metric, row.label)) {
    std::string values(row.values);
    std::replace(values.begin(), values.end(), ' ', '|');
    out += format("{{{}={}\"{}\"}}", row.label, contains(values, "|") ? "~" : "", values);
  }
  EXPECT_EQ(take == "now", window.empty()) << row.rule;
  if (take == "now") return out;
  return format("{}({}[{}])", k_functions.at(take), out, window);
}

constexpr std::string_view k_one_gpu = "on (job, instance, gpu, uuid)";

std::string promql(const AlertCondition& row) {
  std::string out = side(row.metric, row, row.take, row.window);
  if (!row.over.empty()) {
    const bool alike = labels_of(row.metric) == labels_of(row.over);
    out += alike ? " / " : format(" / {} group_left () ", k_one_gpu);
    out += side(row.over, row, row.over_take, row.over_window);
  }
  std::string threshold = format("{:g}", row.threshold);
  return format("{} {} {}", out, row.compare, threshold);
}

TEST(AlertRules, ConditionsSayWhatTheExpressionSays) {
  ASSERT_GT(tables().alert_rules.size(), 20u);
  for (const AlertRule& rule : tables().alert_rules) {
    std::string made;
    for (const AlertCondition& row : tables().alert_conditions)
      if (row.rule == rule.id)
        made += (made.empty() ? "" : format(" and {} ", k_one_gpu)) + promql(row);
    EXPECT_EQ(made, rule.expr) << rule.id;
  }
}

TEST(AlertRules, NamesAreThoseOfOtherTables) {
  std::set<std::string_view> ids;
  for (const AlertRule& rule : tables().alert_rules) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_TRUE(rule.severity == "critical" || rule.severity == "warning" ||
                rule.severity == "info")
        << rule.id;
    EXPECT_TRUE(rule.show == "count" || rule.show == "percent" || rule.show == "bytes" ||
                rule.show == "duration")
        << rule.id;
    EXPECT_TRUE(starts_with(rule.runbook, "cufit ") || starts_with(rule.runbook, "sudo cufit "))
        << rule.id;
  }
  for (const AlertCondition& row : tables().alert_conditions) {
    EXPECT_EQ(ids.count(row.rule), 1u) << row.rule;
    if (row.metric == "up") continue;  // Prometheus' own
    ASSERT_NE(find_metric(row.metric), nullptr) << row.metric;
    if (!row.over.empty()) {
      EXPECT_NE(find_metric(row.over), nullptr) << row.over;
    }
    if (!row.label.empty()) {
      EXPECT_TRUE(has_label(row.metric, row.label)) << row.rule;
    }
    // Only a counter can be asked for its increase, and of it nothing else makes sense.
    EXPECT_EQ(find_metric(row.metric)->type == "counter",
              row.take == "increase" || row.take == "rate")
        << row.rule;
  }
}

// A label or value that a text asks for is there when its alert fires.
TEST(AlertRules, TextsAskForLabelsOfTheAlert) {
  for (const AlertRule& rule : tables().alert_rules) {
    const auto first =
        std::find_if(tables().alert_conditions.begin(), tables().alert_conditions.end(),
                     [&](const AlertCondition& row) { return row.rule == rule.id; });
    ASSERT_NE(first, tables().alert_conditions.end()) << rule.id;
    std::vector<std::set<std::string>> asked;
    for (const std::string_view text :
         {rule.summary, rule.summary_zh, rule.description, rule.description_zh}) {
      asked.emplace_back();
      for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1))
        asked.back().insert(std::string(text.substr(at + 1, text.find('}', at) - at - 1)));
      for (const std::string& name : asked.back()) {
        if (name == "value" || name == "xid_why") continue;
        EXPECT_TRUE(has_label(first->metric, name)) << rule.id << " {" << name << "}";
      }
    }
    EXPECT_EQ(asked[0], asked[1]) << rule.id;
    EXPECT_EQ(asked[2], asked[3]) << rule.id;
  }
}

TEST(AlertRules, XidsAreKnownAndRaiseTheirRule) {
  std::map<std::string_view, std::set<std::string>> listed, meant;
  for (const AlertXid& row : tables().alert_xids) {
    EXPECT_NE(tables().find_xid(row.number), nullptr) << row.number;
    EXPECT_TRUE(meant[row.rule].insert(std::to_string(row.number)).second) << row.number;
  }
  for (const AlertCondition& row : tables().alert_conditions)
    if (row.label == "xid")
      for (const std::string_view value : split(row.values, ' '))
        listed[row.rule].insert(std::string(value));
  EXPECT_EQ(listed, meant);
}

// What Prometheus asks of names, and `promtool check metrics` looks for.
TEST(Metrics, NamesHaveTheirUnitAndType) {
  ASSERT_GT(tables().metrics.size(), 40u);
  std::set<std::string_view> names;
  for (const MetricRow& row : tables().metrics) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(starts_with(row.name, "cufit_")) << row.name;
    EXPECT_TRUE(row.type == "gauge" || row.type == "counter") << row.name;
    EXPECT_EQ(row.type == "counter", ends_with(row.name, "_total")) << row.name;
    const std::string_view base =
        row.type == "counter" ? row.name.substr(0, row.name.size() - 6) : row.name;
    if (row.unit != "none") {
      EXPECT_TRUE(ends_with(base, format("_{}", row.unit))) << row.name << " " << row.unit;
    }
    EXPECT_TRUE(ends_with(row.help, ".")) << row.name;
    EXPECT_TRUE(row.labels.empty() || row.labels.find("gpu") != row.labels.npos ||
                row.name == "cufit_driver_info")
        << row.name;
  }
}

}  // namespace alert_rules_test
}  // namespace cufit::knowledge
