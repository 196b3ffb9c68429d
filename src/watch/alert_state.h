// SPDX-License-Identifier: Apache-2.0
// Alerts in the course of samples: which rules hold, since when, and what is to be said of them. Pure. A rule must hold for its
// time before its alert fires; then the alert is told once, again at long intervals, and once more when it is over.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "watch/alert_rules.h"
#include "watch/alert_term.h"
#include "watch/metrics.h"

namespace cufit::watch {

struct AlertEvent {
  enum class Kind { firing, reminder, resolved };
  Kind kind = Kind::firing;
  size_t rule = 0;  // place in the judge's rules
  AlertLabels labels;
  double value = 0;  // the newest while it held
  double since = 0;  // when the rule began to hold
  double until = 0;  // of resolved: when it held no more; else now
};

struct AlertTimes {
  double repeat_s = 4 * 3600;  // between reminders; 0: none
  // An alert is over when its rule has not held for so long: one that flaps is told once.
  double quiet_s = 60;
};

class AlertJudge {
 public:
  static constexpr size_t k_most_alerts = 1000;

  AlertJudge(std::vector<WatchRule> rules, const AlertTimes& times);

  // In the order of the rules, of one rule by the numbers in its labels; what is over comes last.
  // All numbers of a machine at one moment. `now`: seconds of a clock that does not go back; an earlier one counts as the last.
  std::vector<AlertEvent> judge(const std::vector<MetricFamily>& families, double now);

  const std::vector<WatchRule>& rules() const { return rules_; }
  size_t firing() const;

 private:
  struct JudgedTest {
    TermSeries term;
    std::vector<TermSeries> over;  // one or none
  };
  struct Alert {
    AlertLabels labels;
    double value = 0, since = 0, told = 0;
    double false_since = 0;
    bool firing = false, holds = true;
  };
  std::vector<TermValue> holding(size_t rule, double now) const;
  void hold(size_t rule, TermValue found, double now, std::vector<AlertEvent>& out);

  std::vector<WatchRule> rules_;
  AlertTimes times_;
  std::vector<std::vector<JudgedTest>> tests_;  // beside rules_
  std::map<std::pair<size_t, std::string>, Alert> alerts_;
  double now_ = 0;
};

}  // namespace cufit::watch
