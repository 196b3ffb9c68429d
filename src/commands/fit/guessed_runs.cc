// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/guessed_runs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "host/files/atomic_write.h"

namespace cufit::commands {
namespace {

std::map<std::string, std::string> words_for(const InferredBatch& guess) {
  return {{"option", guess.argument.name},
          {"batch", std::to_string(guess.batch)},
          {"file", guess.file}};
}

// Of a batch size that was set in a DataLoader.
bool is_of_loader(const fit::Warning& warning) {
  return warning.id == "other_batch_failed" || warning.id == "batch_fixed";
}

}  // namespace

Result<std::optional<uint64_t>> GuessedRuns::trace_guess() {
  const InferredBatch guess = *std::exchange(guess_, std::nullopt);
  fit::Traces& traces = out_.traces;
  progress_.say(guess.file.empty() ? "guess" : "guess_file", words_for(guess));
  const std::vector<fit::Warning> warnings = traces.warnings;
  const std::vector<std::string> command = std::exchange(plan_.command, guess.command);
  const size_t before = traces.plain.size(), kept = files_.size();
  const uint64_t batch = fit::other_batches(guess.batch).front();
  plan_.argument = guess.argument;
  if (Result<void> done = trace(batch); !done) return done.error();
  if (traces.plain.size() > before &&
      fit::follows_number(traces.plain.front(), guess.batch, traces.plain.back(), batch))
    return take_guess(guess, batch);
  progress_.say(traces.plain.size() > before ? "guess_wrong" : "guess_refused", words_for(guess));
  forget_files(kept);
  traces.plain.resize(before);
  traces.warnings = warnings;
  out_.failure.reset();
  plan_.argument.reset();
  plan_.command = command;
  return std::optional<uint64_t>();
}

Result<std::optional<uint64_t>> GuessedRuns::take_guess(const InferredBatch& guess,
                                                        uint64_t batch) {
  fit::Traces& traces = out_.traces;
  // What a DataLoader was told in between was not the batch size.
  const std::string last = options_.event_file;
  if (!files_.empty()) files_.pop_back();
  forget_files(1);
  traces.plain.erase(traces.plain.begin() + 1, traces.plain.end() - 1);
  traces.warnings.erase(
      std::remove_if(traces.warnings.begin(), traces.warnings.end(), is_of_loader),
      traces.warnings.end());
  traces.warnings.push_back(
      {guess.file.empty() ? "batch_guessed" : "batch_guessed_file", words_for(guess), ""});
  traces.own_batch = guess.batch;
  if (!plan_.folder.empty()) files_.push_back(last);
  out_.inferred = guess;
  if (Result<void> said = say_batch(traces.plain.front(), first_file(), guess.batch); !said)
    return said.error();
  if (Result<void> said = say_batch(traces.plain.back(), last, batch); !said)
    return said.error();
  return std::optional(guess.batch);
}

void GuessedRuns::forget_files(size_t from) {
  for (size_t i = from; i < files_.size(); ++i) host::remove_file(files_[i]);
  if (files_.size() > from) files_.resize(from);
}

}  // namespace cufit::commands
