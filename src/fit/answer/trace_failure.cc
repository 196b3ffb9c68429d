// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/trace_failure.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "fit/model_spec.h"

namespace cufit::fit {
namespace {

using formats::TraceEnd;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using formats::TraceMark;
using formats::TraceNote;

// After two steps the optimizer's state is there, so that the second shows what all others need.
constexpr uint64_t k_enough_steps = 2;
constexpr size_t k_shown_sources = 5;

const std::string& trace_text(const TraceEvents& events, uint32_t number) {
  return events.texts[number];
}

std::string last_line(const std::string& said) {
  std::string last;
  for (const std::string_view line : split_lines(said))
    if (!trim(line).empty()) last = std::string(trim(line));
  return last;
}

bool has_note(const TraceEvents& events, std::string_view kind) {
  return std::any_of(events.notes.begin(), events.notes.end(),
                     [&](const TraceNote& note) { return trace_text(events, note.kind) == kind; });
}

void learn_until_then(const TraceEvents& events, TraceFailure& failure) {
  failure.torch = std::string(events.fact("torch"));
  failure.found = parse_uint(events.fact("batch_found"));
  failure.steps = ended_steps(events);
  failure.storages = events.storage_count();
  std::vector<uint64_t> bytes(events.storage_count());
  uint64_t live = 0;
  for (const TraceEvent& event : events.events) {
    if (event.kind == TraceEventKind::alloc) live += bytes[event.index] = event.bytes;
    if (event.kind == TraceEventKind::free) live -= bytes[event.index];
    failure.peak_allocated = std::max(failure.peak_allocated, live);
  }
}

// The exception that ended the program, as the tracer noted it.
void quote_exception(const TraceEvents& events, const std::string& said, TraceFailure& failure) {
  for (const TraceNote& note : events.notes) {
    const std::string& kind = trace_text(events, note.kind);
    if (kind != "error" && kind != "timed_out") continue;
    failure.detail = trace_text(events, note.detail);
    failure.source = trace_text(events, note.source);
  }
  if (failure.detail.empty()) failure.detail = last_line(said);
}

// Of what neither PyTorch nor the tracer raised, with no value made up before: it comes without a
// trace, too. What tensors of no contents cannot do has such types as well, and names them.
bool is_programs_own(const TraceEvents& events, const TraceFailure& failure) {
  const std::string_view raised = events.fact("raised_in");
  if (failure.source.empty() || (raised != "program" && raised != "library")) return false;
  if (has_note(events, "data_dependent")) return false;
  for (const char* traced : {"RuntimeError", "NotImplementedError"})
    if (starts_with(failure.detail, traced)) return false;
  for (const char* traced : {"Tensor", "tensor", "cuda", "CUDA"})
    if (contains(failure.detail, traced)) return false;
  return true;
}

std::string next_step_of(const TraceEvents& events, const TraceFailure& failure) {
  if (failure.kind == "timed_out") return "timeout";
  const bool nothing = failure.kind == "no_storage" || failure.kind == "no_step";
  if (nothing && failure.exit_code != 0) return "exited";
  if (failure.kind == "no_storage") return "device";
  if (failure.kind == "no_step") return "step";
  for (const char* error : {"NotImplementedError", "ModuleNotFoundError", "ImportError"})
    for (const char* xformers : {"xformers", "xFormers", "memory_efficient_attention"})
      if (starts_with(failure.detail, error) && contains(failure.detail, xformers))
        return "xformers";
  for (const char* missing : {"FileNotFoundError", "ModuleNotFoundError", "ImportError",
                              "LocalEntryNotFoundError", "OfflineModeIsEnabled"})
    if (starts_with(failure.detail, missing)) return "missing";
  // What FakeTensor says of results whose number only values tell.
  for (const char* unknown : {"DynamicOutputShape", "DataDependentOutput"})
    if (starts_with(failure.detail, unknown)) return "values";
  // What FakeTensor says of layers that make tensors of an own kind, and of operators that want
  // addresses.
  if (contains(failure.detail, "Creating a new Tensor subclass")) return "own_tensor";
  // What went past the tracer and asked CUDA itself.
  for (const char* past : {"Found no NVIDIA driver", "driver version is insufficient"})
    if (contains(failure.detail, past)) return "past_tracer";
  for (const char* compiled : {"data pointer", "data is not allocated"})
    if (contains(failure.detail, compiled)) return "custom_op";
  if (has_note(events, "no_fake_kernel")) return "custom_op";
  // Lightning's Trainer(devices=8).
  if (contains(failure.detail, "But your machine only has")) return "world";
  // What a launcher sets, or a store of its own that other ranks do not join.
  for (const char* rank : {"DistStoreError", "KeyError: 'LOCAL_RANK'", "KeyError: 'RANK'",
                           "KeyError: 'WORLD_SIZE'"})
    if (starts_with(failure.detail, rank)) return "one_process";
  if (is_programs_own(events, failure)) return "own";
  return has_note(events, "several_processes") ? "one_process" : "function";
}

}  // namespace

uint64_t ended_steps(const TraceEvents& events) {
  return static_cast<uint64_t>(
      std::count_if(events.events.begin(), events.events.end(), [](const TraceEvent& event) {
        return event.kind == TraceEventKind::mark &&
               event.index == static_cast<uint32_t>(TraceMark::step_ends);
      }));
}

std::vector<Warning> trace_warnings(const TraceEvents& events) {
  static constexpr std::string_view k_kinds[] = {
      "data_dependent", "no_fake_kernel", "assumed", "sizes_vary", "scratch", "several_processes"};
  std::vector<Warning> warnings;
  std::vector<size_t> lines;  // by warning
  for (const TraceNote& note : events.notes) {
    const std::string& kind = trace_text(events, note.kind);
    // Parts of how the trace ended.
    if (kind == "error" || kind == "timed_out" || is_model_stop(kind)) continue;
    const bool known = is_model_note(kind) ||
                       std::find(std::begin(k_kinds), std::end(k_kinds), kind) != std::end(k_kinds);
    Warning warning{known ? kind : "note", {{"detail", trace_text(events, note.detail)}}, ""};
    if (!known) warning.args["kind"] = kind;
    if (kind == "data_dependent") warning.args.clear();  // each value has words of its own
    const auto same = std::find_if(warnings.begin(), warnings.end(), [&](const Warning& other) {
      return other.id == warning.id && other.args == warning.args;
    });
    const auto at = static_cast<size_t>(same - warnings.begin());
    if (same == warnings.end()) {
      warnings.push_back(std::move(warning));
      lines.push_back(0);
    }
    const std::string& source = trace_text(events, note.source);
    std::string& shown = warnings[at].source;
    if (source.empty() || contains(", " + shown + ",", " " + source + ",")) continue;
    if (++lines[at] <= k_shown_sources)
      shown += (shown.empty() ? "" : ", ") + source;
    else if (lines[at] == k_shown_sources + 1)
      shown += ", ...";
  }
  return warnings;
}

std::optional<TraceFailure> trace_failure(const TraceEvents* events, int exit_code,
                                          const std::string& said, std::vector<Warning>& warnings) {
  TraceFailure failure;
  failure.exit_code = exit_code;
  if (events == nullptr) {
    failure.kind = "no_torch";
    failure.next = exit_code == 0 ? "python" : "alone";
    if (exit_code != 0) failure.detail = last_line(said);
    if (contains(failure.detail, "No module named 'torch'")) failure.next = "torch";
    return failure;
  }
  learn_until_then(*events, failure);
  const bool ended = events->end == TraceEnd::steps_seen || events->end == TraceEnd::script_ended;
  quote_exception(*events, ended ? std::string() : said, failure);
  const bool timed_out = has_note(*events, "timed_out");
  if (timed_out && failure.steps < k_enough_steps) {
    failure.kind = "timed_out";
    failure.limit = "time";
    for (const char* other : {"idle", "operators"})
      if (events->fact("stopped_by") == other) failure.limit = other;
  } else if (ended && failure.storages == 0) {
    failure.kind = "no_storage";
  } else if (ended && failure.steps == 0) {
    failure.kind = "no_step";
  } else if (ended) {
    return std::nullopt;
  } else if (failure.steps >= k_enough_steps && failure.storages > 0) {
    warnings.push_back({timed_out ? "timed_out" : "stopped_early",
                        {{"steps", std::to_string(failure.steps)}, {"detail", failure.detail}},
                        failure.source});
    return std::nullopt;
  } else {
    failure.kind = events->end == TraceEnd::cut_off ? "cut_off" : "failed";
  }
  failure.next = next_step_of(*events, failure);
  failure.warnings = trace_warnings(*events);
  return failure;
}

void explain_model_failure(const TraceEvents* events, TraceFailure& failure) {
  failure.next = "model_python";
  if (events == nullptr) {
    failure.kind = "model_no_torch";
    return;
  }
  for (const TraceNote& note : events->notes) {
    const std::string& kind = trace_text(*events, note.kind);
    if (!is_model_stop(kind)) continue;
    failure.kind = kind;
    failure.detail = trace_text(*events, note.detail);
    failure.source.clear();
    failure.warnings.clear();  // what would have been assumed
    if (kind == "model_stop_targets") failure.next = "model_targets";
    if (kind == "model_stop_class") failure.next = "model_script";
    if (kind == "model_stop_tp" || kind == "model_stop_ranks") failure.next = "model_strategy";
    return;
  }
  failure.next = "model_script";
}

}  // namespace cufit::fit
