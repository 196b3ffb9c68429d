// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "knowledge/knowledge.h"
#include "watch/alert_rules.h"

namespace cufit::watch {
namespace alert_rules_file_test {

Result<std::vector<WatchRule>> read(std::string_view text) {
  const Result<formats::TomlDocument> document = formats::parse_toml(text, "r.toml");
  if (!document) return document.error();
  return alert_rules(knowledge::Knowledge::builtin(), *document);
}

std::string error_of(std::string_view text) {
  const Result<std::vector<WatchRule>> rules = read(text);
  return rules ? "none" : rules.error().text();
}

const WatchRule* find(const std::vector<WatchRule>& rules, std::string_view id) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const WatchRule& one) { return one.id == id; });
  return found == rules.end() ? nullptr : &*found;
}

TEST(AlertRulesFile, BuiltInRulesAreThoseThatCanBeJudgedHere) {
  const std::vector<WatchRule> rules = alert_rules(knowledge::Knowledge::builtin());
  EXPECT_EQ(rules.size(), knowledge::Knowledge::builtin().alert_rules.size() - 1);
  EXPECT_EQ(find(rules, "exporter_down"), nullptr);
  const WatchRule* down = find(rules, "gpu_nvlink_down");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->hold_s, 300);
  ASSERT_TRUE(down->tests[0].over.has_value());
  EXPECT_EQ(down->tests[0].over->take, AlertTake::max);
  EXPECT_EQ(down->tests[0].over->window_s, 86400);
}

TEST(AlertRulesFile, ChangesTurnsOffAndAdds) {
  const Result<std::vector<WatchRule>> rules = read(R"(
[[rule]]
id = "gpu_pcie_width"
enabled = false

[[rule]]
id = "gpu_thermal_slowdown"
severity = "critical"
for = "10m"
threshold = 0.3

[[rule]]
id = "gpu_hot"
severity = "warning"
for = "5m"
summary = "GPU {gpu} is hot"
description = "{value} C in its {sensor}."
summary_zh = "GPU {gpu} 过热"
conditions = [
  {metric = "cufit_gpu_temperature_celsius", label = "sensor", values = ["gpu", "memory"], take = "avg", window = "5m", compare = ">", threshold = 85},
]
)");
  ASSERT_TRUE(rules) << rules.error().text();
  EXPECT_EQ(find(*rules, "gpu_pcie_width"), nullptr);
  const WatchRule* thermal = find(*rules, "gpu_thermal_slowdown");
  ASSERT_NE(thermal, nullptr);
  EXPECT_EQ(thermal->severity, "critical");
  EXPECT_EQ(thermal->hold_s, 600);
  EXPECT_EQ(thermal->tests[0].threshold, 0.3);
  EXPECT_EQ(thermal->tests[0].term.window_s, 600);
  const WatchRule* hot = find(*rules, "gpu_hot");
  ASSERT_NE(hot, nullptr);
  EXPECT_EQ(hot->runbook, "cufit top");
  EXPECT_EQ(hot->zh.summary, "GPU {gpu} 过热");
  EXPECT_EQ(hot->zh.description, hot->en.description);
  EXPECT_EQ(hot->tests[0].term.window_s, 300);
}

constexpr const char* k_new = "[[rule]]\nid = \"a\"\nseverity = \"info\"\nsummary = \"s\"\n";

TEST(AlertRulesFile, ErrorsNameFileAndLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"x = 1", "r.toml, line 1: `x`: only [[rule]] tables are expected"},
      {"", "r.toml: no [[rule]] in it"},
      {"[rule]\nid = \"a\"", "r.toml, line 1: `rule` is written as [[rule]]"},
      {"rule = [1]", "r.toml, line 1: `rule` is written as [[rule]]"},
      {"[[rule]]\nenabled = false", "r.toml, line 1: `id` is missing"},
      {"[[rule]]\nid = \"gpu_lots\"\nenabled = false",
       "r.toml, line 1: `gpu_lots` is no built-in rule, and has no `conditions`; is `gpu_lost` "
       "meant?"},
      {"[[rule]]\nid = \"gpu_lost\"\n[[rule]]\nid = \"gpu_lost\"",
       "r.toml, line 3: rule `gpu_lost` stands here twice"},
      {"[[rule]]\nid = \"gpu_lost\"\nfor = 5", "r.toml, line 3: `for` is a text"},
      {"[[rule]]\nid = \"gpu_lost\"\nfor = \"5x\"",
       "r.toml, line 3: `for`: `5x` is no time such as 90s, 5m, 1h"},
      {"[[rule]]\nid = \"gpu_lost\"\nseverity = \"bad\"",
       "r.toml, line 3: `severity`: `bad` is none of critical, warning, info"},
      {"[[rule]]\nid = \"gpu_lost\"\nenabled = 0", "r.toml, line 3: `enabled` is true or false"},
      {"[[rule]]\nid = \"gpu_lost\"\nthreshold = nan", "r.toml, line 3: `threshold` is a number"},
      {"[[rule]]\nid = \"gpu_lost\"\nsummary = \"GPU {gpus}\"",
       "r.toml, line 3: `{gpus}` is no label of cufit_gpu_lost; there are gpu, uuid, value"},
      {"[[rule]]\nid = \"gpu_lost\"\nsummary = \"GPU {gpu\"",
       "r.toml, line 3: `GPU {gpu`: a brace is not closed"},
      {"[[rule]]\nid = \"gpu_lost\"\nsummary = \"a\\nb\"",
       "r.toml, line 3: `summary` is one line without control characters"},
      {k_new + std::string("conditions = []"),
       "r.toml, line 5: `conditions` is a list of 1 to 8 tables"},
      {k_new + std::string(
                   "conditions = [{metric = \"cufit_gpu_lots\", compare = \">\", threshold = 1}]"),
       "r.toml, line 5: `cufit_gpu_lots` is no metric of cufit; is `cufit_gpu_lost` meant?"},
      {k_new + std::string("conditions = [{metric = \"cufit_gpu_lost\", take = \"sum\", compare = "
                           "\">\", threshold = 1}]"),
       "r.toml, line 5: `take`: `sum` is none of now, increase, rate, avg, min, max"},
      {k_new + std::string("conditions = [{metric = \"cufit_gpu_lost\", take = \"avg\", compare = "
                           "\">\", threshold = 1}]"),
       "r.toml, line 5: `window` is missing"},
      {k_new + std::string("conditions = [{metric = \"cufit_gpu_lost\", take = \"avg\", window = "
                           "\"2d\", compare = \">\", threshold = 1}]"),
       "r.toml, line 5: `window`: 10s to 1d"},
      {k_new + std::string(
                   "conditions = [{metric = \"cufit_gpu_lost\", compare = \"=\", threshold = 1}]"),
       "r.toml, line 5: `compare`: `=` is none of >, <"},
      {k_new + std::string("conditions = [{metric = \"cufit_gpu_lost\", label = \"xid\", values = "
                           "[\"1\"], compare = \">\", threshold = 1}]"),
       "r.toml, line 5: `xid` is no label of cufit_gpu_lost"},
      {"[[rule]]\nid = \"A b\"\nseverity = \"info\"\nsummary = \"s\"\nconditions = [{metric = "
       "\"cufit_gpu_lost\", compare = \">\", threshold = 1}]",
       "r.toml, line 2: `id`: lower-case letters, digits and _ are expected"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(error_of(text), error) << text;
  EXPECT_EQ(error_of("[[rule]]\nid = \"gpu_lost\"\ntreshold = 1").substr(0, 36),
            "r.toml, line 3: `treshold`: no such ");
}

}  // namespace alert_rules_file_test
}  // namespace cufit::watch
