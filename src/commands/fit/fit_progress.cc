// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_progress.h"

#include "base/format.h"

namespace cufit::commands {
namespace {

constexpr double k_worth_seconds = 10;  // what is over sooner needs no estimate

std::string whole(double seconds) { return std::to_string(static_cast<uint64_t>(seconds)); }

}  // namespace

void FitProgress::say(const char* key, const std::map<std::string, std::string>& args) const {
  context_.output.print_error(context_.message(format("fit.progress.{}", key), args));
}

void FitProgress::say_trace(std::optional<uint64_t> batch, uint64_t steps) const {
  say(steps == 1 ? (batch ? "at_one" : "own_one") : batch ? "at" : "own",
      {{"batch", std::to_string(batch.value_or(0))}, {"steps", std::to_string(steps)}});
}

void FitProgress::begin_variant(uint64_t number, uint64_t count, const std::string& switches,
                                uint64_t traces, uint64_t at_once) {
  number_ = number;
  count_ = count;
  at_once_ = at_once;
  left_ = traces * (count + 1 - number);
  const std::optional<double> left = of_variants_.left(left_, at_once_, 0);
  say(left && *left >= k_worth_seconds ? "variant_left" : "variant",
      {{"number", std::to_string(number)},
       {"count", std::to_string(count)},
       {"switches", switches},
       {"left", whole(left.value_or(0))}});
}

void FitProgress::begin_trace(uint64_t steps, bool last) {
  of_trace_.begin(steps, last);
}

void FitProgress::saw(double seconds, const host::TraceProgress& progress) {
  if (!of_trace_.saw(seconds, progress.steps)) return;
  const std::optional<double> left =
      number_ > 0 ? of_variants_.left(left_, at_once_, seconds) : of_trace_.left();
  say(progress.source.empty() ? "still"
      : !left                 ? "still_at"
      : number_ > 0           ? "still_variant"
                              : "still_left",
      {{"seconds", whole(seconds)},
       {"steps", std::to_string(progress.steps)},
       {"left", whole(left.value_or(0))},
       {"number", std::to_string(number_)},
       {"count", std::to_string(count_)},
       {"source", progress.source}});
}

void FitProgress::ended(double seconds) {
  of_variants_.took(seconds);
  if (left_ > 0) --left_;
}

}  // namespace cufit::commands
