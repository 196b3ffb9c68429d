// SPDX-License-Identifier: Apache-2.0
// A user's alert rules: any text; what was read is judged over metrics that all rules ask for, and told of.
#include <cstdint>
#include <cstdlib>

#include "report/notify/alarm.h"
#include "watch/alert_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  const knowledge::Knowledge& tables = knowledge::Knowledge::builtin();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<formats::TomlDocument> document = formats::parse_toml(text, "fuzz");
  if (!document) return 0;
  const Result<std::vector<watch::WatchRule>> rules = watch::alert_rules(tables, *document);
  if (!rules) {
    if (rules.error().what.substr(0, 4) != "fuzz") std::abort();  // errors name the file
    return 0;
  }
  if (rules->size() > watch::k_most_rules) std::abort();
  for (const watch::WatchRule& rule : *rules)
    if (rule.tests.empty() || rule.tests.size() > watch::k_most_tests || rule.en.summary.empty())
      std::abort();
  std::vector<watch::MetricFamily> families;
  for (const knowledge::MetricRow& row : tables.metrics)
    families.push_back({&row, {{{{"gpu", "0"}, {"uuid", "GPU-0"}}, 1}}});
  watch::AlertJudge judge(*rules, {});
  const report::AlarmView view{"fuzz", "zh", 0, tables};
  for (int time = 0; time < 5; ++time) {
    for (watch::MetricFamily& family : families) family.points[0].value += time;
    for (const watch::AlertEvent& event : judge.judge(families, time * 40000.0)) {
      const report::Alarm alarm{judge.rules()[event.rule], event};
      if (report::alarm_line(alarm, view).empty() || report::alarm_json(alarm, view).empty())
        std::abort();
    }
  }
  return 0;
}
