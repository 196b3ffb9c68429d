// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_tracing.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "commands/fit/batch_in_files.h"
#include "commands/fit/guessed_runs.h"
#include "commands/fit/traces_at_once.h"
#include "fit/answer/batch_search.h"
#include "fit/answer/plan_variants.h"
#include "fit/trace_parts.h"
#include "formats/model/trace_facts.h"

namespace cufit::commands {
namespace {

using formats::TraceEvents;

class FitTracing : private GuessedRuns {
 public:
  FitTracing(const Context& context, TracingPlan plan, std::optional<uint64_t> asked,
             host::Interrupts& interrupts)
      : GuessedRuns(context, std::move(plan), interrupts), asked_(asked) {}

  Result<FitTraces> run() {
    if (Result<void> done = trace_all(); !done) return done.error();
    if (!out_.failure && plan_.plans)
      if (Result<void> done = trace_variants(); !done) return done.error();
    fit::keep_micro_batches_apart(out_.traces, plan_.plans);
    return std::move(out_);
  }

 private:
  // The batch size of the first trace; nullopt: what the program itself takes. `--batch` is
  // traced with a function, a model, or an option that the command does not give; else the rules of
  // fit/step_program.h answer for it.
  Result<std::optional<uint64_t>> choose_first_batch() {
    if (!options_.function.empty()) {
      if (!asked_) return fail(Code::usage, "`--function` needs a batch size: --batch N");
      return std::optional(std::max<uint64_t>(*asked_, 2));
    }
    if (!options_.model.empty()) return std::optional(asked_.value_or(1));
    if (!plan_.argument) return std::optional<uint64_t>();
    out_.traces.own_batch = batch_in(plan_.command, *plan_.argument);
    if (!out_.traces.own_batch)
      out_.traces.own_batch = batch_in_files(context_.files, plan_.command, *plan_.argument);
    if (out_.traces.own_batch) return out_.traces.own_batch;
    if (!asked_) progress_.say("option_unseen", {{"option", plan_.argument->name}});
    return asked_;
  }

  Result<void> trace_all() {
    CUFIT_TRY(first, choose_first_batch());
    first_ = first;
    if (Result<void> done = trace(first); !done) return done.error();
    if (out_.failure) return {};
    fit::Traces& traces = out_.traces;
    if (plan_.after_first) {
      CUFIT_TRY(goes_on, plan_.after_first(traces.plain[0]));
      if (!goes_on) return {};
    }
    const std::optional<uint64_t> base = parse_uint(traces.plain[0].fact("batch"));
    // Of a command that was changed the DataLoader does not show the program's own.
    const bool changed = plan_.argument && first;
    if (!traces.own_batch && !changed)
      traces.own_batch = parse_uint(traces.plain[0].fact("batch_found"));
    options_.replaced_batch = traces.own_batch;
    // The first trace decides how many steps are enough; the others are laid over it. One that came
    // to its own end has events after its last step, as the others then have.
    if (traces.plain[0].end == formats::TraceEnd::steps_seen) {
      options_.steps = fit::ended_steps(fit::steps_alone(traces.plain[0]));
      options_.most_steps = options_.steps;
    }
    return trace_others(base.value_or(0));
  }

  // `base`: of the first trace, by its DataLoader where nothing else says it; 0: not known.
  Result<void> trace_others(uint64_t base) {
    // Only behind the first trace, and only where the tracer cannot set the batch size: in a
    // DataLoader it sets what is trained on and nothing else, while an option may also be divided
    // (steps of accumulation, ranks) or mean another thing. Nothing is lost by asking late: the
    // first trace is of the number that the option has, whoever sets the next.
    if (!plan_.argument && !first_) guess_ = inferred_batch(context_.files, plan_.command);
    // A data set that makes its batches itself has a DataLoader of 1.
    if (guess_ && (base == 0 || (base == 1 && guess_->batch != 1))) {
      CUFIT_TRY(done, guessed());
      if (done) return trace_more();
    }
    if (base == 0) {
      // With the option at its default and no DataLoader that shows it, a number says all.
      if (plan_.argument && !first_)
        out_.traces.warnings.push_back({"option_default", {{"option", plan_.argument->name}}, ""});
      else
        out_.traces.warnings.push_back({"batch_unknown", {}, ""});
      return {};
    }
    for (const uint64_t batch : fit::other_batches(base)) {
      CUFIT_TRY(good, trace_again(batch));
      if (guess_ && (!good || without_effect(batch))) {
        CUFIT_TRY(done, guessed());
        if (done) break;
      }
      if (!good) break;
      if (!loader_shows(batch)) return name_first_by_inputs(batch);
    }
    return trace_more();
  }

  bool without_effect(uint64_t batch) const {
    const std::vector<TraceEvents>& traces = out_.traces.plain;
    return fit::batch_by_inputs(traces.front(), traces.back(), batch) == batch;
  }

  // True: the traces follow the option that is called so, at all batch sizes that are usual.
  Result<bool> guessed() {
    CUFIT_TRY(first, trace_guess());
    if (!first) return false;
    first_ = first;
    for (const uint64_t batch : fit::other_batches(*first)) {
      if (parse_uint(out_.traces.plain.back().fact("batch")) == batch) continue;
      CUFIT_TRY(good, trace_again(batch));
      if (!good) break;
    }
    return true;
  }

  // Traces that are as long as each other do the same: of them nothing has to be asked.
  bool as_long() const {
    const std::vector<TraceEvents>& traces = out_.traces.plain;
    return std::all_of(traces.begin(), traces.end(), [&](const TraceEvents& trace) {
      return trace.events.size() == traces.front().events.size();
    });
  }

  static fit::TraceLength length(const TraceEvents& events) {
    return {parse_uint(events.fact("batch")).value_or(0), events.events.size()};
  }

  // A program that does other things at another batch size is traced at some more; not where each of
  // its variants would be, too.
  Result<void> trace_more() {
    if (as_long()) return {};
    for (size_t i = 0; plan_.next_batch && !plan_.plans && i < fit::k_most_traces_more; ++i) {
      const std::vector<TraceEvents>& traces = out_.traces.plain;
      if (traces.size() < 2) return {};
      CUFIT_TRY(batch, plan_.next_batch(out_.traces));
      std::vector<fit::TraceLength> lengths;
      for (const TraceEvents& trace : traces) lengths.push_back(length(trace));
      if (!batch || !fit::worth_its_work(*batch, lengths)) return {};
      CUFIT_TRY(good, trace_again(*batch, "more_batch_failed"));
      if (!good) return {};
    }
    return {};
  }

  // Where the command does not have the option of `--batch-arg`, the first trace is named by what
  // the DataLoader showed. It is another number where the data set makes the batches itself.
  bool loader_shows(uint64_t batch) const {
    if (!plan_.argument || first_) return true;
    return shown_ == batch;
  }

  // Then the batches tell of which size the first trace was: its own ones beside those of the
  // second, at `batch`. Where they do not, or both are of one size, another trace takes its place.
  Result<void> name_first_by_inputs(uint64_t batch) {
    fit::Traces& traces = out_.traces;
    const std::optional<uint64_t> own =
        fit::batch_by_inputs(traces.plain.front(), traces.plain.back(), batch);
    traces.own_batch = own;
    traces.warnings.push_back(
        {own ? "batch_by_inputs" : "batch_own_unknown",
         {{"option", plan_.argument->name}, {"batch", own ? std::to_string(*own) : std::string()}},
         ""});
    if (own && own != batch) {
      return say_batch(traces.plain.front(), first_file(), *own);
    }
    traces.plain.erase(traces.plain.begin());
    first_ = batch;
    CUFIT_TRY(good, trace_again(2 * batch));
    (void)good;
    return {};
  }

  // The program with other things switched on, at the batch sizes at which it was traced as it is.
  Result<void> trace_variants() {
    const std::vector<std::vector<std::string>> wanted =
        fit::variants_worth(out_.traces.plain[0], plan_.traced_for);
    CUFIT_TRY(batches, batches_of_variants());
    FitTraces base = std::move(out_);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const bool both = batches.size() == 2 && room_for_two(context_.files, peak_bytes_);
      progress_.begin_variant(i + 1, wanted.size(), join(wanted[i], " + "), batches.size(),
                              both ? 2 : 1);
      options_.variant = fit::variant_words(wanted[i], base.traces.plain[0]);
      out_ = {};
      if (Result<void> done = both ? trace_both(batches) : trace_each(batches); !done)
        return done.error();
      if (out_.failure)
        base.traces.warnings.push_back(
            {"plan_failed",
             {{"switches", join(wanted[i], " + ")}, {"detail", out_.failure->detail}},
             out_.failure->source});
      else
        base.traces.variants.push_back({wanted[i], std::move(out_.traces.plain)});
    }
    out_ = std::move(base);
    return {};
  }

  Result<void> trace_each(const std::vector<std::optional<uint64_t>>& batches) {
    for (const std::optional<uint64_t>& batch : batches) {
      if (Result<void> done = trace(batch); !done) return done.error();
      if (out_.failure) break;
    }
    return {};
  }

  // Those of the program as it is. Where it tells of no other batch size, a variant does not either.
  Result<std::vector<std::optional<uint64_t>>> batches_of_variants() const {
    const std::vector<TraceEvents>& traces = out_.traces.plain;
    std::vector<std::optional<uint64_t>> batches{first_};
    for (size_t i = 1; i < traces.size(); ++i) batches.push_back(parse_uint(traces[i].fact("batch")));
    std::optional<uint64_t> only;
    if (plan_.only_batch) {
      CUFIT_TRY(batch, plan_.only_batch(out_.traces));
      only = batch;
    }
    for (size_t i = 0; only && i < traces.size(); ++i)
      if (parse_uint(traces[i].fact("batch")) == only)
        return std::vector<std::optional<uint64_t>>{batches[i]};
    if (batches.size() > 2) batches.erase(batches.begin());  // a batch of one
    return batches;
  }

  // False where this batch size could not be traced; a warning then says why.
  Result<bool> trace_again(uint64_t batch, const char* warning = "other_batch_failed") {
    fit::Traces& traces = out_.traces;
    const size_t before = traces.plain.size();
    if (Result<void> done = trace(batch); !done) return done.error();
    if (out_.failure) {
      const fit::TraceFailure& failure = *out_.failure;
      traces.warnings.push_back({warning,
                                 {{"batch", std::to_string(batch)}, {"detail", failure.detail}},
                                 failure.source});
      out_.failure.reset();
      return false;
    }
    if (traces.plain.size() == before) return false;
    const std::optional<uint64_t> got = parse_uint(traces.plain.back().fact("batch"));
    if (got == batch) {
      if (fit::computes_gradients(traces.plain.back()) ||
          !fit::computes_gradients(traces.plain.front()))
        return true;
      traces.plain.pop_back();
      traces.warnings.push_back({"batch_trains_nothing", {{"batch", std::to_string(batch)}}, ""});
      return false;
    }
    traces.plain.pop_back();
    traces.warnings.push_back(
        {"batch_fixed",
         {{"wanted", std::to_string(batch)}, {"got", got ? std::to_string(*got) : "?"}},
         std::string(traces.plain[0].fact("batch_from"))});
    return false;
  }

  const std::optional<uint64_t> asked_;
  // The batch size of the first trace, as choose_first_batch() says.
  std::optional<uint64_t> first_;
};

}  // namespace

Result<FitTraces> trace_program(const Context& context, TracingPlan plan,
                                std::optional<uint64_t> batch, host::Interrupts& interrupts) {
  return FitTracing(context, std::move(plan), batch, interrupts).run();
}

}  // namespace cufit::commands
