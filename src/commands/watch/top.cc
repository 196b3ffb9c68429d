// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/top.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "commands/progress.h"
#include "commands/watch/live_samples.h"
#include "commands/watch/sample_times.h"
#include "commands/watch/this_machine.h"
#include "commands/watch/top_screen.h"
#include "host/files/sample_file.h"
#include "host/process/signal_pause.h"
#include "host/process/terminal_screen.h"
#include "host/process/this_process.h"
#include "watch/demo.h"
#include "watch/watcher.h"

namespace cufit::commands {
namespace {

constexpr Option k_top_options[] = {
    option<&TopRequest::once>("--once"),
    option<&TopRequest::interval>("--interval", "SECONDS"),
    option<&TopRequest::samples>("--samples", "N"),
    option<&TopRequest::sort>("--sort", "KEY", "memory use growth age pid user"),
    option<&TopRequest::filter>("--filter", "WORDS").or_empty(),
    option<&TopRequest::from>("--from", "FILE"),
    option<&TopRequest::demo>("--demo"),
    option<&TopRequest::record>("--record", "FILE"),
    option<&TopRequest::json>("--json"),
};

constexpr uint64_t k_most_samples = 1000000;
constexpr double k_top_first_answer_seconds = 60;  // 3 s a GPU without the persistence daemon
constexpr double k_top_look_seconds =
    0.25;                            // at signals and at what is late, while nothing else happens
constexpr double k_longest_gap = 5;  // of a recording that was paused

struct TopTimes {
  double interval = 1;
  uint64_t samples = 1;
};

Result<TopTimes> read_times(const TopRequest& request) {
  TopTimes out;
  CUFIT_TRY(interval, read_interval(request.interval, out.interval));
  out.interval = interval;
  if (request.samples) {
    const std::optional<uint64_t> count = parse_uint(*request.samples);
    if (!count || *count == 0 || *count > k_most_samples)
      return fail(Code::usage, format("`--samples {}`: 1 to {}", *request.samples, k_most_samples));
    out.samples = *count;
  }
  return out;
}

// All samples of this command: of a recording, or so many as were asked for.
class TopRun {
 public:
  TopRun(const Context& context, const TopRequest& request)
      : context_(context), request_(request) {}

  int run() {
    const Result<TopTimes> times = read_times(request_);
    if (!times) return context_.output.exit_code_for(times.error());
    if (is_screen()) {
      const Result<void> shown = is_recorded() ? play_recording() : show_machine(*times);
      if (!shown) return context_.output.exit_code_for(shown.error());
      return interrupted_ != 0 ? interrupted_exit(interrupted_) : k_ok;
    }
    const Result<void> watched = is_recorded() ? watch_recording() : watch_machine(*times);
    if (!watched) return context_.output.exit_code_for(watched.error());
    if (interrupted_ != 0) return interrupted_exit(interrupted_);
    return print();
  }

 private:
  bool is_screen() const {
    return !request_.once && !request_.json && !request_.samples &&
           host::is_terminal(host::Stream::out) && host::is_terminal(host::Stream::in);
  }

  report::TopPicture picture() const {
    report::TopPicture out;
    out.sort = request_.sort;
    out.filter = request_.filter.value_or("");
    out.utc_offset_s = utc_offset_at(context_.now());
    return out;
  }

  // Until the user leaves.
  Result<void> show_machine(const TopTimes& times) {
    std::optional<host::SampleFile> record;
    if (request_.record) {
      CUFIT_TRY(made, host::SampleFile::create(*request_.record));
      record.emplace(std::move(made));
    }
    LiveSamples live(context_, times.interval);
    const host::SignalPause signals;
    CUFIT_TRY(terminal, host::TerminalScreen::open(context_.output.style().colour));
    TopScreen screen(context_, terminal, picture());
    screen.draw(watcher_.now());
    while ((interrupted_ = signals.pause(0)) == 0) {
      bool changed = false;
      if (!screen.take(terminal.wait(live.descriptor(), k_top_look_seconds), changed)) return {};
      if (live.wait(0) && live.has_answered()) {
        if (record)
          if (Result<void> added = record->add(live.newest()); !added) return added.error();
        if (!screen.paused()) watcher_.add(live.newest());
        changed = changed || !screen.paused();
      } else if (live.newest().stalled_seconds) {
        watcher_.add(live.newest());
        changed = true;
      }
      if (changed) screen.draw(watcher_.now());
    }
    return {};
  }

  // At the pace at which it was recorded, and by steps.
  Result<void> play_recording() {
    CUFIT_TRY(samples, recorded_samples());
    const host::SignalPause signals;
    CUFIT_TRY(terminal, host::TerminalScreen::open(context_.output.style().colour));
    TopScreen screen(context_, terminal, picture());
    // The demo begins where its trends are known.
    size_t place = request_.demo ? samples.size() * 3 / 4 : 0;
    for (size_t i = 0; i <= place; ++i) watcher_.add(samples[i]);
    double shown_at = host::running_seconds();
    bool changed = true;
    while ((interrupted_ = signals.pause(0)) == 0) {
      if (changed) {
        screen.set_place(format("{}/{}", place + 1, samples.size()));
        screen.draw(watcher_.now());
      }
      if (!screen.take(terminal.wait(-1, k_top_look_seconds), changed)) return {};
      size_t wanted = place;
      const bool more = place + 1 < samples.size();
      const double gap = more ? samples[place + 1].time - samples[place].time : 0;
      if (more && !screen.paused() &&
          host::running_seconds() - shown_at >= std::clamp(gap, 0.0, k_longest_gap))
        ++wanted;
      const int steps = screen.taken_steps();
      if (steps > 0) wanted = std::min(wanted + static_cast<size_t>(steps), samples.size() - 1);
      if (steps < 0) wanted -= std::min(wanted, static_cast<size_t>(-steps));
      if (wanted == place) continue;
      if (wanted < place) watcher_ = watch::Watcher();
      for (size_t i = wanted < place ? 0 : place + 1; i <= wanted; ++i) watcher_.add(samples[i]);
      place = wanted;
      shown_at = host::running_seconds();
      changed = true;
    }
    return {};
  }

  bool is_recorded() const { return request_.from.has_value() || request_.demo; }

  Result<std::vector<facts::GpuSample>> recorded_samples() const {
    if (request_.from && request_.demo)
      return fail(Code::usage, "`--demo` and `--from` do not go together");
    if (request_.record)
      return fail(Code::usage, "`--record` is for this machine, not for a recording");
    if (request_.from) return host::read_samples(context_.files, *request_.from);
    return watch::demo_samples(static_cast<double>(context_.now()));
  }

  Result<void> watch_recording() {
    CUFIT_TRY(samples, recorded_samples());
    for (const facts::GpuSample& sample : samples) watcher_.add(sample);
    return {};
  }

  Result<void> watch_machine(const TopTimes& times) {
    std::optional<host::SampleFile> record;
    if (request_.record) {
      CUFIT_TRY(made, host::SampleFile::create(*request_.record));
      record.emplace(std::move(made));
    }
    const host::SignalPause signals;
    LiveSamples live(context_, times.interval);
    Progress progress("cufit top");
    const double begun = host::running_seconds();
    uint64_t taken = 0;
    double last = 0;
    while (taken < times.samples) {
      if ((interrupted_ = signals.pause(0)) != 0) break;
      const bool changed = live.wait(0.25);
      if (!live.has_answered() && host::running_seconds() - begun > k_top_first_answer_seconds) {
        watcher_.add(live.newest());
        break;
      }
      if (!changed || !live.has_answered()) continue;
      watcher_.add(live.newest());
      // A driver that hangs from here on: the last good sample is the answer.
      if (live.newest().time <= last) break;
      last = live.newest().time;
      ++taken;
      if (times.samples > 1) progress.show_count(taken, times.samples);
      if (record)
        if (Result<void> added = record->add(live.newest()); !added) return added.error();
    }
    if (record)
      context_.output.print_message(context_.message(
          "top.recorded",
          {{"samples", std::to_string(record->samples())}, {"file", *request_.record}}));
    return {};
  }

  int print() const {
    const watch::WatchedMachine& machine = watcher_.now();
    const std::string text =
        request_.json
            ? report::top_json(machine, context_.knowledge)
            : report::top_text(machine, picture(), context_.knowledge, context_.output.style());
    return context_.output.print(text, machine.gpus.empty() ? k_findings : k_ok);
  }

  const Context& context_;
  const TopRequest& request_;
  watch::Watcher watcher_;
  int interrupted_ = 0;
};

}  // namespace

std::span<const Option> top_options() { return k_top_options; }

int run_top(const Context& context, const TopRequest& request) {
  return TopRun(context, request).run();
}

}  // namespace cufit::commands
