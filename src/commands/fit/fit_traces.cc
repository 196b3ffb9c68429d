// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_traces.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/fit/fit_batch.h"
#include "commands/fit/fit_judge.h"
#include "commands/fit/fit_model.h"
#include "commands/fit/fit_plans.h"
#include "commands/settings.h"
#include "host/files/atomic_write.h"
#include "fit/trace_parts.h"
#include "host/files/host.h"
#include "host/python/traced_run.h"

namespace cufit::commands {
namespace {

using formats::TraceEvents;

constexpr size_t k_most_kept_bytes = 1u << 30;
constexpr uint64_t k_seconds = 600, k_most_seconds = 7 * 86400;
constexpr double k_told_seconds = 30;  // between two lines of where the program is
constexpr uint64_t k_steps = 3, k_least_steps = 2, k_most_steps = 100;
constexpr uint64_t k_most_tokens = 1u << 24;

// As if the tracer had said it.
void set_fact(TraceEvents& events, const std::string& key, const std::string& value) {
  const auto number = static_cast<uint32_t>(events.texts.size());
  events.texts.push_back(key);
  events.texts.push_back(value);
  events.facts.push_back({number, number + 1});
}

std::string varint(uint64_t number) {
  std::string out;
  for (; number > 0x7f; number >>= 7) out += static_cast<char>((number & 0x7f) | 0x80);
  return out + static_cast<char>(number);
}

// The same in the kept file, before its last record (formats/model/trace_events.h): read again, it
// has to answer as it did now. `texts`: that the file has.
Result<void> keep_fact(const std::string& path, size_t texts, const std::string& key,
                       const std::string& value) {
  CUFIT_TRY(bytes, host::RealHost().read_file(path, k_most_kept_bytes));
  std::string added;
  for (const std::string& text : {key, value}) added += '\x01' + varint(text.size()) + text;
  added += '\x09' + varint(texts) + varint(texts + 1);
  bytes.insert(bytes.size() - 2, added);  // the record `end` is two bytes
  return host::write_whole_file(path, bytes);
}

// As it was typed; an option stays one (shell_word makes a path of it).
std::string typed(const std::string& word) {
  if (!starts_with(word, "-")) return shell_word(word);
  const std::string quoted = shell_word("_" + word);
  return quoted == "_" + word ? word : "'" + quoted.substr(2);
}

void add(std::vector<report::FitWarning>& list, std::vector<report::FitWarning> more) {
  for (report::FitWarning& warning : more) {
    const bool known =
        std::any_of(list.begin(), list.end(), [&warning](const report::FitWarning& other) {
          // Sizes of batches are told once, not for each batch size.
          return other == warning || (other.id == "sizes_vary" && other.id == warning.id);
        });
    if (!known) list.push_back(std::move(warning));
  }
}

// What answers without plans is what a trace without plans tells.
void keep_micro_batches_apart(FitTraces& out, bool plan) {
  for (TraceEvents& trace : out.traces) {
    if (plan) out.whole.push_back(trace);
    trace = fit::without_micro_batches(trace);
  }
}

class Tracing {
 public:
  Tracing(const Arguments& arguments, const TracedGpu& gpu) : arguments_(arguments) {
    options_.gpu = gpu.card;
    cudnn_ = gpu.cudnn;
    options_.device = gpu.cudnn;
    if (arguments.has("plan")) options_.variant = k_plan_variant;
  }

  Result<FitTraces> run() {
    if (Result<void> read = read_options(); !read) return read.error();
    if (Result<void> done = trace_all(); !done) return done.error();
    if (!out_.failure && arguments_.has("plan"))
      if (Result<void> done = trace_variants(); !done) return done.error();
    keep_micro_batches_apart(out_, arguments_.has("plan"));
    return std::move(out_);
  }

 private:
  Result<void> read_options() {
    options_.steps = k_steps;
    options_.function = arguments_.get("function");
    command_ = arguments_.all("COMMAND");
    if (!options_.function.empty()) {
      if (!contains(options_.function, ":"))
        return fail(Code::usage,
                    format("`--function {}`: MODULE:NAME of a function make_step(batch)",
                           options_.function));
      if (arguments_.has("batch-arg"))
        return fail(Code::usage, "`--function` is given its batch size; leave `--batch-arg` out");
      if (command_.empty()) command_ = {"python3"};
    }
    if (arguments_.has("steps")) {
      const std::optional<uint64_t> steps = parse_uint(arguments_.get("steps"));
      if (!steps || *steps < k_least_steps || *steps > k_most_steps)
        return fail(Code::usage, format("`--steps {}`: a number from {} to {}",
                                        arguments_.get("steps"), k_least_steps, k_most_steps));
      options_.steps = *steps;
      options_.most_steps = *steps;
    }
    options_.seconds = k_seconds;
    if (arguments_.has("timeout")) {
      const std::optional<uint64_t> seconds = parse_uint(arguments_.get("timeout"));
      if (!seconds || *seconds > k_most_seconds)
        return fail(Code::usage, format("`--timeout {}`: seconds, up to {}; 0: no limit",
                                        arguments_.get("timeout"), k_most_seconds));
      options_.seconds = *seconds;
    }
    if (arguments_.get("batch", "auto") != "auto") asked_ = parse_uint(arguments_.get("batch"));
    if (arguments_.has("batch-arg")) {
      CUFIT_TRY(argument, parse_batch_argument(arguments_.get("batch-arg")));
      argument_ = argument;
    }
    if (arguments_.has("keep")) {
      const host::RealHost machine;
      const Result<std::string> real = machine.real_path(arguments_.get("keep"));
      if (!real)
        return fail(Code::usage, format("`--keep {}`: no such folder", arguments_.get("keep")));
      folder_ = *real;
    }
    if (asks_for_model(arguments_)) {
      CUFIT_TRY(model, fit_model(arguments_, options_.gpu));
      options_.model = std::move(model.json);
      command_ = std::move(model.command);
      out_.program = std::move(model.title);
      return {};
    }
    if (Result<void> read = read_sequence(); !read) return read.error();
    std::vector<std::string> words;
    for (const std::string& word : command_) words.push_back(typed(word));
    if (!options_.function.empty()) words.push_back(shell_word(options_.function));
    out_.program = join(words, " ");
    return {};
  }

  // The length of a sequence is written into the command, or the tracer sets it.
  Result<void> read_sequence() {
    if (!arguments_.has("seq")) {
      if (!arguments_.has("seq-arg")) return {};
      return fail(Code::usage, "`--seq-arg` says how, `--seq N` how long");
    }
    options_.seq = parse_uint(arguments_.get("seq"));
    if (!options_.seq || *options_.seq == 0 || *options_.seq > k_most_tokens)
      return fail(Code::usage, format("`--seq {}`: a number of tokens from 1 to {}",
                                      arguments_.get("seq"), k_most_tokens));
    if (!arguments_.has("seq-arg")) return {};
    CUFIT_TRY(argument, parse_batch_argument(arguments_.get("seq-arg"), "seq-arg"));
    command_ = with_batch(command_, argument, *options_.seq);
    options_.seq.reset();
    return {};
  }

  // The batch size of the first trace; nullopt: what the program itself takes.
  Result<std::optional<uint64_t>> first_batch() {
    if (!options_.function.empty()) {
      if (!asked_) return fail(Code::usage, "`--function` needs a batch size: --batch N");
      return std::optional(std::max<uint64_t>(*asked_, 2));
    }
    if (!options_.model.empty()) return std::optional(asked_.value_or(1));
    if (!argument_) return std::optional<uint64_t>();
    out_.found = batch_in(command_, *argument_);
    return out_.found ? out_.found : asked_;
  }

  Result<void> trace_all() {
    CUFIT_TRY(first, first_batch());
    first_ = first;
    if (Result<void> done = trace(first); !done) return done.error();
    if (out_.failure) return {};
    const std::optional<uint64_t> base = parse_uint(out_.traces[0].fact("batch"));
    // Of a command that was changed the DataLoader does not show the program's own.
    const bool changed = argument_ && first;
    if (!out_.found && !changed) out_.found = parse_uint(out_.traces[0].fact("batch_found"));
    options_.batch_was = out_.found;
    if (!base || *base == 0) {
      out_.warnings.push_back({"batch_unknown", {}, ""});
      return {};
    }
    // The first trace decides how many steps are enough; the others are laid over it. One that came
    // to its own end has events after its last step, as the others then have.
    if (out_.traces[0].end == formats::TraceEnd::steps_seen) {
      options_.steps = steps_of(fit::steps_alone(out_.traces[0]));
      options_.most_steps = options_.steps;
    }
    // Programs often do other things with a batch of one.
    std::vector<uint64_t> others = {*base * 2};
    if (*base == 1) others = {2, 4};
    for (const uint64_t batch : others) {
      CUFIT_TRY(good, trace_again(batch));
      if (!good) break;
      if (Result<void> shown = loader_shows(batch); !shown) return shown.error();
    }
    return {};
  }

  // Where the command does not have the option of `--batch-arg`, the first trace is named by what
  // the DataLoader showed. It is another number where the data set makes the batches itself.
  Result<void> loader_shows(uint64_t batch) const {
    if (!argument_ || first_) return {};
    const std::optional<uint64_t> found = parse_uint(out_.traces.back().fact("batch_found"));
    if (found == batch) return {};
    return fail(Code::usage,
                format("`--batch-arg`: the command has no `{}`, and the program's DataLoader does "
                       "not show what it sets: write it into the command, or add --batch N",
                       argument_->name));
  }

  // The program with other things switched on, at the batch sizes at which it was traced as it is.
  Result<void> trace_variants() {
    const std::vector<std::vector<std::string>> wanted = variants_worth(out_.traces, options_.gpu);
    FitTraces base = std::move(out_);
    std::vector<std::optional<uint64_t>> batches;
    for (size_t i = 0; i < base.traces.size(); ++i)
      batches.push_back(i == 0 ? first_ : parse_uint(base.traces[i].fact("batch")));
    if (batches.size() > 2) batches.erase(batches.begin());  // a batch of one
    for (size_t i = 0; i < wanted.size(); ++i) {
      options_.variant = join(wanted[i], ",");
      print_error(message("variant", {{"number", std::to_string(i + 1)},
                                      {"count", std::to_string(wanted.size())},
                                      {"switches", join(wanted[i], " + ")}}));
      options_.variant = format("{},{}", k_plan_variant, options_.variant);
      out_ = {};
      for (const std::optional<uint64_t>& batch : batches) {
        if (Result<void> done = trace(batch); !done) return done.error();
        if (out_.failure) break;
      }
      if (out_.failure)
        base.warnings.push_back(
            {"plan_failed",
             {{"switches", join(wanted[i], " + ")}, {"detail", out_.failure->detail}},
             out_.failure->source});
      else
        base.variants.push_back({wanted[i], std::move(out_.traces)});
    }
    out_ = std::move(base);
    return {};
  }

  // False where this batch size could not be traced; a warning then says why.
  Result<bool> trace_again(uint64_t batch) {
    const size_t before = out_.traces.size();
    if (Result<void> done = trace(batch); !done) return done.error();
    if (out_.failure) {
      const report::FitFailure& failure = *out_.failure;
      out_.warnings.push_back({"other_batch_failed",
                               {{"batch", std::to_string(batch)}, {"detail", failure.detail}},
                               failure.source});
      out_.failure.reset();
      return false;
    }
    if (out_.traces.size() == before) return false;
    const std::optional<uint64_t> got = parse_uint(out_.traces.back().fact("batch"));
    if (got == batch) return true;
    out_.traces.pop_back();
    out_.warnings.push_back(
        {"batch_fixed",
         {{"wanted", std::to_string(batch)}, {"got", got ? std::to_string(*got) : "?"}},
         std::string(out_.traces[0].fact("batch_from"))});
    return false;
  }

  Result<void> trace(std::optional<uint64_t> batch) {
    say(batch ? "at" : "own", batch.value_or(0));
    options_.command = command_;
    options_.batch = std::nullopt;
    if (argument_ && batch) {
      options_.command = with_batch(command_, *argument_, *batch);
    } else {
      options_.batch = batch;
    }
    if (!folder_.empty()) options_.event_file = format("{}/cufit-fit-{}.events", folder_, ++kept_);
    double told = 0;
    options_.watch = [&](double seconds, const host::TraceProgress& progress) {
      if (seconds - told < k_told_seconds) return;
      told = seconds;
      print_error(message(progress.source.empty() ? "still" : "still_at",
                          {{"seconds", std::to_string(static_cast<uint64_t>(seconds))},
                           {"steps", std::to_string(progress.steps)},
                           {"source", progress.source}}));
    };
    // The first trace of a program asks for all batch sizes.
    const bool asked = asked_cudnn_ == options_.variant;
    options_.cudnn = asked ? "" : cudnn_;
    CUFIT_TRY(run, host::traced_run(options_, interrupts_));
    asked_cudnn_ = options_.variant;
    std::optional<TraceEvents> events;
    if (run.events && !folder_.empty())
      print_error(message("kept", {{"path", options_.event_file}}));
    if (run.events) {
      CUFIT_TRY(read, formats::read_trace_events(run.events));
      events = std::move(read);
    }
    out_.failure = failure_of(events ? &*events : nullptr, run.exit_code, run.said, out_.warnings);
    if (out_.failure && run.timed_out) {
      out_.failure->kind = "timed_out";
      out_.failure->next = "timeout";
      out_.failure->detail.clear();
      out_.failure->source = run.progress.source;
    }
    if (out_.failure) {
      out_.failure->batch = batch;
      out_.failure->program = out_.program;
      if (!options_.model.empty())
        explain_model_failure(events ? &*events : nullptr, *out_.failure);
      return {};
    }
    // What was asked for goes before what a DataLoader shows: it may hold a share of it. Where
    // nothing was asked for, the first DataLoader is the one that trains.
    if (batch && (argument_ || !options_.function.empty())) {
      if (!folder_.empty() && events->complete) {
        const Result<void> kept =
            keep_fact(options_.event_file, events->texts.size(), "batch", std::to_string(*batch));
        if (!kept) return kept.error();
      }
      set_fact(*events, "batch", std::to_string(*batch));
    } else if (!batch && !events->fact("batch_found").empty()) {
      set_fact(*events, "batch", std::string(events->fact("batch_found")));
    }
    add(out_.warnings, warnings_of(*events));
    out_.traces.push_back(std::move(*events));
    return {};
  }

  void say(const char* key, uint64_t batch) const {
    print_error(message(
        key, {{"batch", std::to_string(batch)}, {"steps", std::to_string(options_.steps)}}));
  }

  std::string message(const char* key, const std::map<std::string, std::string>& args) const {
    const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
    return report::format_message(
        knowledge.message(format("fit.progress.{}", key), language(arguments_)), args);
  }

  const Arguments& arguments_;
  host::TraceOptions options_;
  std::string cudnn_;                       // the GPUs for which it is asked
  std::optional<std::string> asked_cudnn_;  // the last variant of the program that it was asked for
  std::vector<std::string> command_;
  std::optional<BatchArgument> argument_;
  std::optional<uint64_t> asked_;
  std::optional<uint64_t> first_;  // the batch size of the first trace, as first_batch() says
  std::string folder_;             // of --keep
  int kept_ = 0;
  host::Interrupts interrupts_;
  FitTraces out_;
};

void add_variant(std::vector<VariantTraces>& variants, const std::vector<std::string>& switches,
                 TraceEvents events) {
  for (VariantTraces& variant : variants)
    if (variant.switches == switches) return variant.traces.push_back(std::move(events));
  variants.push_back({switches, {}});
  variants.back().traces.push_back(std::move(events));
}

Result<FitTraces> read_files(const std::vector<std::string>& paths, bool plan) {
  FitTraces out;
  const host::RealHost machine;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    names.push_back(shell_word(path));
    CUFIT_TRY(source, machine.open(path));
    Result<TraceEvents> events =
        formats::read_trace_events(std::shared_ptr<const ByteSource>(std::move(source)));
    if (!events) return events.error();
    out.failure = failure_of(&*events, 0, "", out.warnings);
    if (out.failure) {
      if (out.failure->kind == "cut_off") {
        out.failure->kind = "file_cut_off";
        out.failure->next = "trace_again";
      }
      out.failure->program = path;
      out.failure->batch = parse_uint(events->fact("batch"));
      return out;
    }
    if (const std::vector<std::string> switches = switches_of(*events); !switches.empty()) {
      add_variant(out.variants, switches, std::move(*events));
      continue;
    }
    add(out.warnings, warnings_of(*events));
    if (!out.found) out.found = parse_uint(events->fact("batch_found"));
    out.traces.push_back(std::move(*events));
  }
  if (out.traces.empty())
    return fail(Code::usage,
                "`--events`: these are traces of plans; name those of the program as "
                "it is as well");
  keep_micro_batches_apart(out, plan);
  out.program = join(names, " ");
  return out;
}

}  // namespace

Result<FitTraces> fit_traces(const Arguments& arguments, const TracedGpu& gpu) {
  std::vector<std::string> files = arguments.all("events");
  if (files.empty() && arguments.all("COMMAND").empty() && !arguments.has("function"))
    return fail(Code::usage,
                "`cufit fit` needs a program: cufit fit --gpu \"RTX 3090\" -- python train.py");
  if (!asks_for_model(arguments))
    if (Result<void> good = without_model(arguments); !good) return good.error();
  if (files.empty() || asks_for_model(arguments)) return Tracing(arguments, gpu).run();
  for (const char* option : {"batch-arg", "seq", "seq-arg", "function", "steps", "keep", "timeout"})
    if (arguments.has(option))
      return fail(Code::usage,
                  format("`--events` starts no program: `--{}` does not go with it", option));
  // `--events a b`: an option takes one value, the others stand where a program would.
  for (std::string& more : arguments.all("COMMAND")) files.push_back(std::move(more));
  return read_files(files, arguments.has("plan"));
}

}  // namespace cufit::commands
