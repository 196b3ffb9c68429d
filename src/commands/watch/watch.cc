// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/watch.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/progress.h"
#include "commands/watch/alarm_sender.h"
#include "commands/watch/first_answer.h"
#include "commands/watch/live_samples.h"
#include "commands/watch/machine_state.h"
#include "commands/watch/watch_settings.h"
#include "host/files/sample_file.h"
#include "host/process/signal_pause.h"
#include "report/notify/watch_unit.h"
#include "report/top.h"
#include "watch/metrics.h"
#include "watch/watcher.h"

namespace cufit::commands {
namespace {

constexpr Option k_watch_options[] = {
    option<&WatchRequest::notify>("--notify", "URL"),
    option<&WatchRequest::exec>("--exec", "CMD"),
    option<&WatchRequest::rules>("--rules", "FILE"),
    option<&WatchRequest::interval>("--interval", "SECONDS"),
    option<&WatchRequest::repeat>("--repeat", "DURATION"),
    option<&WatchRequest::from>("--from", "FILE"),
    option<&WatchRequest::test>("--test"),
    option<&WatchRequest::unit>("--unit"),
    option<&WatchRequest::json>("--json"),
};

constexpr double k_attend_seconds = 0.25;  // at signals, programs, reports of receivers

class WatchRun {
 public:
  WatchRun(const Context& context, const WatchRequest& request, const WatchSettings& settings)
      : context_(context),
        request_(request),
        settings_(settings),
        judge_(settings.rules, settings.times) {}

  int watch_machine() {
    const host::SignalPause signals;  // before there are threads, which inherit what is blocked
    host::ignore_broken_pipes();
    AlarmSender sender(context_, settings_, request_.json, true);
    LiveSamples live(context_, settings_.interval_s);
    MachineStateReader state(context_);
    FirstAnswer first(context_, live);
    const double begun = host::running_seconds();
    const auto epoch = static_cast<double>(context_.now());
    double judged = -1e9;
    int signal = 0;
    bool written = true;
    while (written && (signal = signals.pause(0)) == 0) {
      const bool changed = live.wait(k_attend_seconds);
      sender.attend();
      const double running = host::running_seconds();
      // Where the driver does not answer at all there is nothing but that to be said.
      if (first.is_awaited()) continue;
      if (!changed && running - judged < settings_.interval_s) continue;
      judged = running;
      watcher_.add(live.newest());
      const auto now = static_cast<double>(context_.now());
      say_begin(sender, live);
      const std::vector<watch::MetricFamily> metrics =
          watch::machine_metrics(watcher_.now(), state.read(), now, {}, context_.knowledge);
      // The judge's clock is one that nobody sets.
      const double time = epoch + running - begun;
      written = sender.tell(judge_.judge(metrics, time), judge_.rules(), now - time);
    }
    sender.finish();
    return written ? interrupted_exit(signal) : k_failed;
  }

  Result<int> judge_recording() {
    CUFIT_TRY(samples, host::read_samples(context_.files, *request_.from));
    AlarmSender sender(context_, settings_, request_.json, false);
    size_t alarms = 0;
    // A clock that nobody sets: it stands still where the recorded one goes back.
    double time = samples[0].time, before = time;
    {
      Progress progress("cufit watch");
      for (size_t i = 0; i < samples.size(); ++i) {
        const double now = samples[i].time;
        time += std::max(now - before, 0.0);
        before = now;
        watcher_.add(samples[i]);
        const std::vector<watch::MetricFamily> metrics = watch::machine_metrics(
            watcher_.now(), watch::MachineState{}, now, {}, context_.knowledge);
        const std::vector<watch::AlertEvent> events = judge_.judge(metrics, time);
        for (const watch::AlertEvent& event : events)
          alarms += event.kind == watch::AlertEvent::Kind::firing ? 1 : 0;
        if (!sender.tell(events, judge_.rules(), now - time)) return k_failed;
        progress.show_count(i + 1, samples.size());
      }
    }
    context_.output.print_message(context_.message(
        "watch.judged", {{"samples", std::to_string(samples.size())},
                         {"time", report::rough_time(time - samples[0].time, context_.language())},
                         {"alarms", std::to_string(alarms)}}));
    return alarms > 0 ? k_findings : k_ok;
  }

 private:
  // Once, when something is known of the machine; again where NVML is gone.
  void say_begin(const AlarmSender& sender, const LiveSamples& live) {
    const facts::MissingValue* gone = watch::nvml_problem(watcher_.now().missing);
    if (!has_begun_)
      context_.output.print_message(
          context_.message("watch.begun", {{"rules", std::to_string(settings_.rules.size())},
                                           {"gpus", std::to_string(watcher_.now().gpus.size())},
                                           {"interval", format("{:g}", settings_.interval_s)},
                                           {"receivers", sender.receivers()}}));
    if (gone != nullptr && !is_gone_ && live.has_answered())
      context_.output.print_message(context_.message("watch.no_gpu", {{"why", gone->why}}));
    has_begun_ = true;
    is_gone_ = gone != nullptr;
  }

  const Context& context_;
  const WatchRequest& request_;
  const WatchSettings& settings_;
  watch::Watcher watcher_;
  watch::AlertJudge judge_;
  bool has_begun_ = false, is_gone_ = false;
};

int print_unit(const Context& context, const WatchRequest& request) {
  const Result<std::vector<std::string>> command = watch_unit_command(context, request);
  if (!command) return context.output.exit_code_for(command.error());
  report::WatchUnit unit{*command, false, !request.exec.empty()};
  for (const std::string& said : request.notify)
    unit.reads_variables = unit.reads_variables || starts_with(said, "env:");
  return context.output.print(report::watch_unit(unit, context.language(), context.knowledge),
                              k_ok);
}

}  // namespace

std::span<const Option> watch_options() { return k_watch_options; }

int run_watch(const Context& context, const WatchRequest& request) {
  // The addresses of a unit need not be there yet: they are read where it runs.
  WatchRequest checked = request;
  if (request.unit) checked.notify.clear();
  const Result<WatchSettings> settings = read_watch_settings(context, checked);
  if (!settings) return context.output.exit_code_for(settings.error());
  if (request.unit) return print_unit(context, request);
  for (const std::string& file : settings->exposed)
    context.output.print_message(
        context.message("watch.exposed", {{"file", file}, {"quoted", shell_word(file)}}));
  if (request.test) {
    const host::SignalPause signals;
    host::ignore_broken_pipes();
    AlarmSender sender(context, *settings, false, false);
    return sender.test(signals, static_cast<double>(context.now())) ? k_ok : k_findings;
  }
  WatchRun run(context, request, *settings);
  if (!request.from) return run.watch_machine();
  const Result<int> judged = run.judge_recording();
  return judged ? *judged : context.output.exit_code_for(judged.error());
}

}  // namespace cufit::commands
