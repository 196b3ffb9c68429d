// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/first_answer.h"

#include "commands/watch/this_machine.h"
#include "host/process/signal_pause.h"
#include "report/error_translation.h"
#include "report/notify/alarm.h"

namespace cufit::commands {
namespace {

constexpr double k_longest_seconds = 60;  // 3 s a GPU without the persistence daemon
constexpr double k_late_seconds = 1.25;   // with a turn of the caller's loop it is said within 2 s
constexpr size_t k_date_letters = 11;     // "2026-11-29 "

}  // namespace

FirstAnswer::FirstAnswer(const Context& context, const LiveSamples& live)
    : context_(context), live_(live), begun_(host::running_seconds()) {}

void FirstAnswer::say(const char* key, const std::string& end) {
  const auto now = static_cast<double>(context_.now());
  const double left = begun_ + k_longest_seconds - host::running_seconds();
  const std::string call = live_.call();
  context_.output.print_message(context_.message(
      key,
      {{"call", call.empty() ? "NVML" : call},
       {"end", report::translated_error(end, context_.language(), context_.knowledge)},
       {"time",
        report::alarm_time(now + left, utc_offset_at(context_.now())).substr(k_date_letters)}}));
}

bool FirstAnswer::is_awaited() {
  if (live_.has_answered()) return false;
  const double waited = host::running_seconds() - begun_;
  if (waited >= k_longest_seconds) return false;
  const std::string& end = live_.newest().stalled_end;
  if (!end.empty() && !said_end_) {
    said_end_ = said_late_ = true;
    say("top.ended", end);
  }
  if (waited >= k_late_seconds && !said_late_) {
    said_late_ = true;
    say("top.waits", {});
  }
  return true;
}

}  // namespace cufit::commands
