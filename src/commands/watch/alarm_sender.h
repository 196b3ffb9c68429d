// SPDX-License-Identifier: Apache-2.0
// Alarms of `cufit watch` on their way: to stdout at once, to receivers and programs beside the sampling.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "commands/watch/watch_settings.h"
#include "host/notify/alarm_programs.h"
#include "host/notify/post_queue.h"
#include "host/process/signal_pause.h"
#include "report/notify/alarm.h"

namespace cufit::commands {

class AlarmSender {
 public:
  // `sends`: false where a recording is judged.
  AlarmSender(const Context& context, const WatchSettings& settings, bool json, bool sends);

  // Of one moment. `clock_ahead`: seconds by which the wall clock is ahead of the events' clock. False: stdout is closed.
  bool tell(const std::vector<watch::AlertEvent>& events,
            const std::vector<watch::WatchRule>& rules, double clock_ahead);
  void attend();  // never waits
  // What is under way gets some seconds.
  void finish();
  // A test alarm to all; true: all took it.
  bool test(const host::SignalPause& signals, double now);
  std::string receivers() const;  // "https://hooks.slack.com/..., `--exec CMD`"

 private:
  void send(const std::vector<report::Alarm>& alarms);
  void call_programs(const report::Alarm& alarm);
  void say_failures(const std::vector<host::AlarmFailure>& failures);

  const Context& context_;
  const WatchSettings& settings_;
  report::AlarmView view_;
  bool json_;
  std::unique_ptr<host::PostQueue> queue_;
  host::AlarmPrograms programs_;
  bool prints_ = true;  // stdout still takes what is written
};

}  // namespace cufit::commands
