// SPDX-License-Identifier: Apache-2.0
// What is said of an alarm: on a terminal, as JSON, to a user's program, to chat services and to what reads Alertmanager's
// webhooks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "knowledge/knowledge.h"
#include "report/notify/receiver.h"
#include "report/report.h"
#include "watch/alert_state.h"

namespace cufit::report {

// By value, so that it can wait to be sent. Times of the event: seconds since 1970.
struct Alarm {
  watch::WatchRule rule;
  watch::AlertEvent event;
  bool is_test = false;

  bool is_resolved() const { return event.kind == watch::AlertEvent::Kind::resolved; }
};

struct AlarmView {
  std::string machine;  // its host name
  std::string lang;
  int64_t utc_offset_s = 0;
  const knowledge::Knowledge& knowledge;
  bool as_root = false;  // who reads the line is root here: a machine of root's may have no sudo
};

struct AlarmText {
  std::string summary, description;  // the latter may be empty
  std::string runbook;               // one command, ready to paste
};

// `quoted`: what makes a name from outside harmless where the text goes; it gets printable text.
using QuoteName = std::function<std::string(std::string_view)>;
AlarmText alarm_text(const Alarm& alarm, const AlarmView& view, const QuoteName& quoted);

// "2026-11-29 02:45:10"; "2026-11-29T02:45:10Z".
std::string alarm_time(double time, int64_t utc_offset_s);
std::string alarm_time_utc(double time);

// One line, with its end.
std::string alarm_line(const Alarm& alarm, const AlarmView& view);
// The same as a line of JSON, schema cufit.watch/1; texts in the language of `view`.
std::string alarm_json(const Alarm& alarm, const AlarmView& view);
// For a user's program: CUFIT_ALERT=gpu_lost ...
std::vector<std::pair<std::string, std::string>> alarm_variables(const Alarm& alarm,
                                                                 const AlarmView& view);

struct AlarmPost {
  std::string url, body;
};
// One message about all of `alarms`, which is not empty. `now`: seconds since 1970, for signatures.
AlarmPost alarm_post(const Receiver& receiver, const std::vector<Alarm>& alarms,
                     const AlarmView& view, int64_t now);

}  // namespace cufit::report
