// SPDX-License-Identifier: Apache-2.0
// `cufit watch` and Prometheus agree: the cases that promtool judges (tests/export/alert_rules_test.yml) by the judge, with the
// same series, a sample a minute.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "support/places.h"
#include "unit/watch/alert_machine.h"

namespace cufit::watch {
namespace alert_promtool_test {

struct Series {
  std::string metric;
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::string> values;
};

struct Case {
  std::string name;
  std::vector<Series> series;
  struct Expected {
    std::vector<std::string> labels;  // that alerts are told apart by
    std::set<std::string> alerts;
  };
  std::map<size_t, Expected> expected;  // by minute
};

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  char bytes[4096];
  for (size_t count = 0; (count = fread(bytes, 1, sizeof bytes, pipe)) > 0;)
    out.append(bytes, count);
  return pclose(pipe) == 0 ? out : std::string();
}

std::vector<Case> read_cases() {
  const std::string text =
      output_of(format("/usr/bin/python3 -B '{0}/tests/watch/promtool_series.py' "
                       "'{0}/tests/export/alert_rules_test.yml'",
                       test::source_dir()));
  std::vector<Case> out;
  for (const std::string_view line : split_lines(text)) {
    const std::vector<std::string_view> words = split(line, '\t');
    if (starts_with(line, "case ")) out.push_back({std::string(line.substr(5)), {}, {}});
    if (starts_with(line, "series ")) {
      Series series{std::string(words[0].substr(7)), {}, {}};
      size_t i = 1;
      for (; words[i] != "|"; ++i) {
        const size_t equals = words[i].find('=');
        series.labels.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
      }
      for (const std::string_view value : split(words[i + 1], ' '))
        series.values.emplace_back(value);
      out.back().series.push_back(std::move(series));
    }
    if (starts_with(line, "expect ")) {
      Case::Expected& expected = out.back().expected[std::stoul(std::string(words[0].substr(7)))];
      for (const std::string_view label : split(words[1], ' ')) expected.labels.emplace_back(label);
      for (size_t i = 2; i < words.size(); ++i) expected.alerts.emplace(words[i]);
    }
  }
  return out;
}

std::set<std::string> shown(const test::ToldAlerts& told, const std::vector<std::string>& labels) {
  std::set<std::string> out;
  for (const auto& [key, event] : told.firing) {
    std::string one = test::alert_name_of(key.first);
    for (const std::string& name : labels)
      if (const std::string_view value = label_of(event.labels, name); !value.empty())
        one += format(" {}={}", name, value);
    out.insert(one);
  }
  return out;
}

// The texts of what fired other than expected.
std::string differences(const Case& one, std::vector<WatchRule> rules) {
  AlertJudge judge(std::move(rules), {});
  test::ToldAlerts told;
  std::string out;
  size_t minutes = 0;
  for (const Series& series : one.series) minutes = std::max(minutes, series.values.size());
  for (size_t minute = 0; minute < minutes; ++minute) {
    test::MadeMetrics metrics;
    for (const Series& series : one.series)
      if (minute < series.values.size() && series.values[minute] != "_" &&
          test::metric_row(series.metric) != nullptr) {
        test::MadeMetrics::Labels labels;
        for (const auto& [name, value] : series.labels) labels.emplace_back(name, value);
        metrics.add(series.metric, std::move(labels), std::stod(series.values[minute]));
      }
    told.take(judge.judge(metrics.families(), static_cast<double>(minute) * 60), judge.rules());
    const auto expected = one.expected.find(minute);
    if (expected == one.expected.end()) continue;
    std::set<std::string> wanted = expected->second.alerts;
    wanted.erase("CufitExporterDown instance=a");  // Prometheus' own
    const std::set<std::string> have = shown(told, expected->second.labels);
    for (const std::string& alert : have)
      if (wanted.count(alert) == 0)
        out += format("{}: minute {}: {} fires\n", one.name, minute, alert);
    for (const std::string& alert : wanted)
      if (have.count(alert) == 0)
        out += format("{}: minute {}: {} does not fire\n", one.name, minute, alert);
  }
  return out;
}

TEST(AlertPromtool, TheJudgeFiresWherePrometheusDoes) {
  if (output_of("/usr/bin/python3 -c 'import yaml; print(1)' 2>/dev/null").empty())
    GTEST_SKIP() << "no python3-yaml here";
  const std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 8u);
  std::string all;
  size_t expected = 0;
  for (const Case& one : cases) {
    all += one.name + ", ";
    for (const auto& [minute, alerts] : one.expected) expected += alerts.alerts.size();
    EXPECT_EQ(differences(one, alert_rules(knowledge::Knowledge::builtin())), "");
  }
  EXPECT_GT(expected, 20u);
  for (const WatchRule& rule : alert_rules(knowledge::Knowledge::builtin()))
    EXPECT_TRUE(contains(all, rule.id)) << rule.id;
}

// The comparison can fail: thresholds that are reached by what should stay quiet, or never; times that are too short.
TEST(AlertPromtool, ChangedRulesDisagree) {
  if (output_of("/usr/bin/python3 -c 'import yaml; print(1)' 2>/dev/null").empty())
    GTEST_SKIP() << "no python3-yaml here";
  const std::vector<Case> cases = read_cases();
  struct Change {
    const char* rule;
    void (*change)(WatchRule&);
  };
  const Change changes[] = {
      {"gpu_thermal_slowdown", [](WatchRule& rule) { rule.tests[0].threshold = 0.6; }},
      {"gpu_thermal_slowdown", [](WatchRule& rule) { rule.tests[0].threshold = 0.05; }},
      {"gpu_pcie_replays", [](WatchRule& rule) { rule.tests[0].threshold = 50; }},
      {"gpu_idle_holder", [](WatchRule& rule) { rule.hold_s = 0; }},
      {"gpu_clock_low", [](WatchRule& rule) { rule.tests.pop_back(); }},
      {"gpu_clock_low", [](WatchRule& rule) { rule.tests[0].values = {"memory"}; }},
      {"gpu_power_brake", [](WatchRule& rule) { rule.tests[0].values = {"sw_power_cap"}; }},
      {"gpu_nvlink_down", [](WatchRule& rule) { rule.tests[0].over->window_s = 60; }},
      {"process_memory_full", [](WatchRule& rule) { rule.tests[0].threshold = 40000; }}};
  for (const Change& change : changes) {
    std::vector<WatchRule> rules = alert_rules(knowledge::Knowledge::builtin());
    for (WatchRule& rule : rules)
      if (rule.id == change.rule) change.change(rule);
    std::string found;
    for (const Case& one : cases) found += differences(one, rules);
    EXPECT_NE(found, "") << change.rule;
  }
}

}  // namespace alert_promtool_test
}  // namespace cufit::watch
