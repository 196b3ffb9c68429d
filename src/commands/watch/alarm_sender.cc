// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/alarm_sender.h"

#include <algorithm>

#include "base/format.h"
#include "commands/watch/this_machine.h"
#include "formats/prose/printable.h"
#include "host/process/this_process.h"
#include "report/error_translation.h"

namespace cufit::commands {
namespace {

constexpr double k_program_limit_s = 60;
constexpr double k_last_seconds = 3;  // for messages, when cufit is asked to end

host::Delivery delivery(const report::ReceiverVerdict& verdict) {
  using Outcome = report::ReceiverVerdict::Outcome;
  if (verdict.outcome == Outcome::arrived) return {host::Delivery::Outcome::arrived, {}};
  return {verdict.outcome == Outcome::later ? host::Delivery::Outcome::later
                                            : host::Delivery::Outcome::refused,
          verdict.why};
}

host::PostReceiver post_receiver(const report::Receiver& receiver) {
  return {[receiver](const host::HttpAnswer& answer) {
    return delivery(report::judge_answer(receiver.kind, answer.status,
                                         report::without_address(answer.body, receiver)));
  }};
}

report::Alarm test_alarm(const Context& context, double now) {
  report::Alarm out;
  out.is_test = true;
  out.rule.id = "cufit_test";
  out.rule.severity = "info";
  out.rule.show = "count";
  out.rule.runbook = "cufit top";
  for (const char* lang : {"en", "zh"}) {
    watch::AlertTexts& texts = lang == std::string_view("zh") ? out.rule.zh : out.rule.en;
    texts.summary = report::label(context.knowledge, lang, "watch.test_summary");
    texts.description = report::label(context.knowledge, lang, "watch.test_description");
  }
  out.event.value = 1;
  out.event.since = out.event.until = now;
  return out;
}

std::vector<std::pair<std::string, std::string>> variables_of_programs(
    const Context& context, const WatchSettings& settings) {
  auto out = context.files.variables();
  std::erase_if(out, [&](const auto& variable) {
    return std::find(settings.secrets.begin(), settings.secrets.end(), variable.first) !=
           settings.secrets.end();
  });
  return out;
}

}  // namespace

AlarmSender::AlarmSender(const Context& context, const WatchSettings& settings, bool json,
                         bool sends)
    : context_(context),
      settings_(settings),
      view_{machine_name(context), context.language(), utc_offset_at(context.now()),
            context.knowledge, sends && host::is_root()},
      json_(json),
      programs_(variables_of_programs(context, settings), k_program_limit_s) {
  if (!sends || settings.receivers.empty()) return;
  std::vector<host::PostReceiver> receivers;
  for (const report::Receiver& receiver : settings.receivers)
    receivers.push_back(post_receiver(receiver));
  queue_ = std::make_unique<host::PostQueue>(receivers, host::PostTimes{});
}

std::string AlarmSender::receivers() const {
  std::vector<std::string> out;
  for (const report::Receiver& receiver : settings_.receivers) out.push_back(receiver.shown);
  for (const std::string& program : settings_.programs)
    out.push_back(format("`--exec {}`", formats::printable(program, 60)));
  return out.empty() ? context_.message("watch.here") : join(out, ", ");
}

void AlarmSender::send(const std::vector<report::Alarm>& alarms) {
  if (alarms.empty() || queue_ == nullptr) return;
  const auto kept = std::make_shared<const std::vector<report::Alarm>>(alarms);
  for (size_t i = 0; i < settings_.receivers.size(); ++i)
    queue_->add(i, [kept, receiver = settings_.receivers[i], view = view_](int64_t now) {
      report::AlarmPost post = report::alarm_post(receiver, *kept, view, now);
      host::HttpPost out;
      out.url = std::move(post.url);
      out.body = std::move(post.body);
      return out;
    });
}

void AlarmSender::call_programs(const report::Alarm& alarm) {
  for (const std::string& command : settings_.programs)
    programs_.add(
        {command, report::alarm_variables(alarm, view_), report::alarm_json(alarm, view_)});
}

bool AlarmSender::tell(const std::vector<watch::AlertEvent>& events,
                       const std::vector<watch::WatchRule>& rules, double clock_ahead) {
  std::vector<report::Alarm> begun, over;
  std::string lines;
  view_.utc_offset_s = utc_offset_at(context_.now());
  for (const watch::AlertEvent& event : events) {
    report::Alarm alarm{rules[event.rule], event};
    alarm.event.since += clock_ahead;
    alarm.event.until += clock_ahead;
    lines += json_ ? report::alarm_json(alarm, view_) : report::alarm_line(alarm, view_);
    if (queue_ != nullptr) (alarm.is_resolved() ? over : begun).push_back(alarm);
    call_programs(alarm);
  }
  send(begun);
  send(over);
  if (lines.empty() || !prints_) return true;
  if (context_.output.print(lines, k_ok) == k_ok) return true;
  // Whoever is told in another way goes on being told.
  prints_ = queue_ == nullptr && settings_.programs.empty();
  return !prints_;
}

void AlarmSender::say_failures(const std::vector<host::AlarmFailure>& failures) {
  for (const host::AlarmFailure& failure : failures)
    context_.output.print_message(context_.message(
        "watch.exec_failed",
        {{"command", formats::printable(failure.command, 60)},
         {"why", report::translated_error(failure.why, context_.language(), context_.knowledge)}}));
}

void AlarmSender::attend() {
  say_failures(programs_.attend());
  if (queue_ == nullptr) return;
  for (const host::PostReport& report : queue_->reports()) {
    using Kind = host::PostReport::Kind;
    const char* key = report.kind == Kind::waits  ? "watch.waits"
                      : report.kind == Kind::lost ? "watch.lost"
                                                  : "watch.full";
    context_.output.print_message(context_.message(
        key,
        {{"receiver", settings_.receivers[report.receiver].shown},
         {"why", report::translated_error(report.why, context_.language(), context_.knowledge)}}));
  }
}

void AlarmSender::finish() {
  say_failures(programs_.attend());
  const size_t dropped =
      (queue_ == nullptr ? 0 : queue_->finish(k_last_seconds)) + programs_.leave();
  if (dropped > 0)
    context_.output.print_message(
        context_.message("watch.dropped", {{"count", std::to_string(dropped)}}));
}

bool AlarmSender::test(const host::SignalPause& signals, double now) {
  const report::Alarm alarm = test_alarm(context_, now);
  bool all = true, interrupted = false;
  std::string out;
  for (const report::Receiver& receiver : settings_.receivers) {
    report::AlarmPost made =
        report::alarm_post(receiver, {alarm}, view_, static_cast<int64_t>(context_.now()));
    host::HttpPost post;
    post.url = std::move(made.url);
    post.body = std::move(made.body);
    post.stopped = [&] { return interrupted = interrupted || signals.pause(0) != 0; };
    const host::Delivery answer = host::post_now(post, post_receiver(receiver));
    const bool took = answer.outcome == host::Delivery::Outcome::arrived;
    all = all && took;
    out += context_.message(took ? "watch.test_ok" : "watch.test_failed",
                            {{"receiver", receiver.shown},
                             {"why", report::translated_error(answer.why, context_.language(),
                                                              context_.knowledge)}}) +
           "\n";
  }
  for (const std::string& command : settings_.programs) {
    programs_.add(
        {command, report::alarm_variables(alarm, view_), report::alarm_json(alarm, view_)});
    std::vector<host::AlarmFailure> failures = programs_.attend();
    while (failures.empty() && !programs_.is_idle() && !interrupted) {
      interrupted = signals.pause(0.05) != 0;
      failures = programs_.attend();
    }
    all = all && failures.empty() && !interrupted;
    const std::string shown = formats::printable(command, 60);
    if (failures.empty() && !interrupted)
      out += context_.message("watch.test_exec_ok", {{"command", shown}}) + "\n";
    for (const host::AlarmFailure& failure : failures)
      out += context_.message("watch.exec_failed",
                              {{"command", shown},
                               {"why", report::translated_error(failure.why, context_.language(),
                                                                context_.knowledge)}}) +
             "\n";
  }
  return context_.output.print(out, k_ok) == k_ok && all;
}

}  // namespace cufit::commands
