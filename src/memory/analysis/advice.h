// SPDX-License-Identifier: Apache-2.0
// What would have helped, by replay: other settings, and the program without private
// pools or without what grows. Nothing is
// estimated; where the limit that ended the run is only known as a range, so is the answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "memory/analysis/cause.h"

namespace cufit::analysis {

enum class Remedy : uint8_t { settings, without_pools, without_growth };
const char* to_string(Remedy remedy);

struct Advice {
  Remedy remedy = Remedy::settings;
  std::string settings;  // as replayed
  uint64_t peak_allocated_bytes = 0;
  uint64_t peak_reserved_bytes = 0;  // without a limit
  int64_t saved_bytes = 0;           // of reserved bytes, against the recorded settings
  // Whether it gets past the recorded out-of-memory; empty: it depends on where in the range the
  // limit lay, or the run did not die.
  std::optional<bool> survives;
  // The lowest limit found at which it survives, of runs that died.
  std::optional<uint64_t> smallest_limit_bytes;
  std::vector<std::string> replay_limitations;
};

// The replays without a limit, which depend on nothing that is observed but for the last one.
struct Trials {
  std::vector<memory::Answer> settings;  // the recorded ones first
  std::optional<memory::Answer> without_pools;
  std::optional<memory::Answer> without_growth;
};
// Of them what a recording that is not verified yet can tell: all but the recorded run.
struct EarlyTrials {
  memory::VersionProfile version;
  memory::Settings recorded;                 // both as the recording had them then
  std::shared_ptr<memory::Inquiry> inquiry;  // whoever has time works at it; null: nothing to try
};
EarlyTrials early_trials(const memory::VerifiedRecording& unverified);
// `early`, which may be empty, counts where verification changed neither version nor settings.
Result<std::vector<memory::Answer>> try_settings(const memory::VerifiedRecording& verified,
                                                 const EarlyTrials& early);
// Empty unless it ran out of memory and asked private pools.
Result<std::optional<memory::Answer>> try_without_pools(const memory::VerifiedRecording& verified);
// Empty unless memory grows. `history` is referred to.
Result<std::optional<memory::Answer>> try_without_growth(const memory::VerifiedRecording& verified,
                                                         const History& history);

// The recorded settings first, then the others, lowest peak first; then without private pools, and
// without what grows.
Result<std::vector<Advice>> advice_for(const memory::VerifiedRecording& verified,
                                       const Trials& trials, const std::optional<Limits>& limits);

// Of an advice with the settings that rescue most often (or the defaults, where those were on).
std::optional<Rescue> rescue_among(const std::vector<Advice>& advice,
                                   const std::optional<Limits>& limits);
// Of the advice without private pools.
std::optional<Rescue> rescue_without_pools(const std::vector<Advice>& advice,
                                           const std::optional<Limits>& limits);

}  // namespace cufit::analysis
