// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/trace_runs.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "commands/fit/kept_traces.h"
#include "commands/fit/run_failure.h"
#include "formats/model/trace_facts.h"

namespace cufit::commands {

using formats::TraceEvents;

Result<void> TraceRuns::trace(std::optional<uint64_t> batch) {
  progress_.say_trace(batch, options_.steps);
  prepare_run(batch);
  CUFIT_TRY(run, host::traced_run(options_, interrupts_));
  asked_cudnn_ = options_.variant;
  return take(run, batch);
}

Result<void> TraceRuns::trace_both(const std::vector<std::optional<uint64_t>>& batches) {
  std::vector<host::TraceOptions> all;
  for (const std::optional<uint64_t>& batch : batches) {
    prepare_run(batch);
    asked_cudnn_ = options_.variant;
    all.push_back(options_);
  }
  all.back().watch = nullptr;
  progress_.say_trace(batches[0], options_.steps);
  const int kept = kept_;
  CUFIT_TRY(runs, host::traced_runs(all, interrupts_));
  for (size_t i = 0; i < all.size(); ++i) {
    // In the order of traces that come one after another.
    if (i > 0) progress_.say_trace(batches[i], options_.steps);
    if (i > 0) context_.output.print_beside(runs[i].said);
    kept_ = kept - static_cast<int>(all.size() - 1 - i);
    options_ = all[i];
    if (Result<void> done = take(runs[i], batches[i]); !done) return done.error();
    if (!out_.failure) continue;
    out_.failure.reset();
    --kept_;
    if (i == 0) asked_cudnn_.reset();
    if (Result<void> done = trace(batches[i]); !done) return done.error();
    if (out_.failure) break;
  }
  kept_ = kept;
  return {};
}

void TraceRuns::prepare_run(std::optional<uint64_t> batch) {
  options_.command = plan_.command;
  options_.batch = std::nullopt;
  if (plan_.argument && batch)
    options_.command = with_batch(plan_.command, *plan_.argument, *batch);
  else
    options_.batch = batch;
  if (!plan_.run.sent.empty())
    options_.sent =
        format("{}/{}", plan_.run.sent, batch ? std::to_string(*batch) : std::string("own"));
  if (!plan_.folder.empty()) options_.event_file = kept_trace(plan_, ++kept_);
  // The first trace of a program asks for all batch sizes.
  options_.cudnn = asked_cudnn_ == options_.variant ? "" : plan_.run.cudnn;
  progress_.begin_trace(options_.steps, !out_.traces.plain.empty());
  options_.watch = [this](double seconds, const host::TraceProgress& at) {
    progress_.saw(seconds, at);
  };
}

Result<void> TraceRuns::take(const host::TracedRun& run, std::optional<uint64_t> batch) {
  progress_.ended(run.seconds);
  peak_bytes_ = std::max(peak_bytes_, run.peak_bytes);
  std::optional<TraceEvents> events;
  if (run.events) {
    CUFIT_TRY(read, formats::read_trace_events(run.events));
    events = std::move(read);
  }
  if (run.events && !plan_.folder.empty()) {
    CUFIT_TRY(named, name_kept_trace(plan_, options_.event_file, *events, kept_));
    options_.event_file = named;
    files_.push_back(named);
    progress_.say("kept", {{"path", options_.event_file}});
  }
  const TraceEvents* read = events ? &*events : nullptr;
  out_.failure = fit::trace_failure(read, run.exit_code, run.said, out_.traces.warnings);
  if (out_.failure) {
    explain_failure(run, options_, read, *out_.failure);
    out_.failure->batch = batch;
    if (plan_.argument && out_.traces.own_batch) out_.failure->found = out_.traces.own_batch;
    out_.failure->program = out_.program;
    return {};
  }
  shown_ = parse_uint(events->fact("batch_found"));
  if (Result<void> named = name_batch(*events, batch); !named) return named.error();
  fit::add_warnings(out_.traces.warnings, fit::trace_warnings(*events));
  out_.traces.plain.push_back(std::move(*events));
  return {};
}

// What was asked for goes before what a DataLoader shows: it may hold a share of it. Where
// nothing was asked for, the first DataLoader is the one that trains.
Result<void> TraceRuns::name_batch(TraceEvents& events, std::optional<uint64_t> batch) {
  if (batch && (plan_.argument || !options_.function.empty())) {
    return say_batch(events, options_.event_file, *batch);
  }
  if (!batch && !events.fact("batch_found").empty()) {
    formats::add_fact(events, "batch", std::string(events.fact("batch_found")));
  }
  return {};
}

Result<void> TraceRuns::say_batch(TraceEvents& events, const std::string& file, uint64_t batch) {
  std::vector<std::pair<std::string, std::string>> facts = {{"batch", std::to_string(batch)}};
  if (plan_.argument && out_.traces.own_batch)
    facts.emplace_back("batch_found", std::to_string(*out_.traces.own_batch));
  if (!plan_.folder.empty() && events.complete)
    if (Result<void> kept = keep_facts(context_.files, file, facts); !kept) return kept;
  for (const auto& [key, value] : facts) formats::add_fact(events, key, value);
  return {};
}

}  // namespace cufit::commands
