// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/advice.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/parallel.h"
#include "memory/allocator/rounding.h"

namespace cufit::analysis {
namespace {

using memory::Answer;
using memory::Program;
using memory::Question;
using memory::VerifiedRecording;

// The usual answers to an out-of-memory error, the one that people are told most among them
// although it rarely helps.
constexpr std::array<std::string_view, 4> k_settings = {
    "expandable_segments:True", "max_split_size_mb:128", "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:4"};
constexpr std::string_view k_defaults;

// Replays take a tenth of a microsecond for each request; beyond this a search would be felt.
constexpr size_t k_search_ops = 400'000;
constexpr int k_search_rounds = 8;
constexpr size_t k_advice_ops_per_thread = 2'000;  // of the ten replays that a limit asks for
constexpr uint64_t k_search_step = 2u << 20;       // bytes: no segment is smaller

Question question_of(const std::string& settings) {
  Question question;
  question.settings = settings;
  return question;
}

// What is tried under limits: settings, for the whole program or for what does not grow.
struct Candidate {
  const VerifiedRecording& verified;
  const Advice& advice;
  const std::vector<bool>* left_out;

  bool without_pools() const { return advice.remedy == Remedy::without_pools; }
};

Result<bool> survives_below(const Candidate& candidate, const Limits& limits, uint64_t bound) {
  Question question = question_of(candidate.advice.settings);
  (limits.card_full ? question.capacity : question.allowed) = bound;
  question.with_reasons = false;
  question.left_out = candidate.left_out;
  question.without_pools = candidate.without_pools();
  CUFIT_TRY(answers, memory::ask(candidate.verified, std::span(&question, 1)));
  // Who catches a refusal goes on, but without what it asked for.
  return answers[0].survives() && (!limits.caught || answers[0].result.served_caught_failure);
}

// Halves the range between what fails and what survives.
Result<uint64_t> smallest_limit(const Candidate& candidate, const Limits& limits) {
  const Advice& advice = candidate.advice;
  const memory::Program& program = *candidate.verified.program;
  uint64_t survives = advice.peak_reserved_bytes;
  uint64_t fails = std::min(advice.peak_allocated_bytes, survives);
  // As much as was reserved lets everything pass, but for expandable segments: there the whole
  // request is compared with the limit, of which a part may be mapped already.
  if (advice.settings.find("expandable_segments") != std::string::npos) {
    const uint64_t enough =
        survives + memory::round_up(program.largest_request, memory::k_large_buffer);
    CUFIT_TRY(alive, survives_below(candidate, limits, survives));
    if (!alive) fails = std::exchange(survives, enough);
  }
  if (program.ops.size() > k_search_ops) return survives;
  for (int round = 0; round < k_search_rounds && survives - fails > k_search_step; ++round) {
    const uint64_t middle = fails + (survives - fails) / 2;
    CUFIT_TRY(alive, survives_below(candidate, limits, middle));
    (alive ? survives : fails) = middle;
  }
  return survives;
}

std::vector<std::string> settings_to_try(const VerifiedRecording& verified) {
  std::vector<std::string> out = {verified.settings};
  const auto add = [&](std::string_view settings) {
    if (std::find(out.begin(), out.end(), settings) == out.end()) out.emplace_back(settings);
  };
  for (const std::string_view settings : k_settings) add(settings);
  add(k_defaults);
  return out;
}

Advice advice_of(Remedy remedy, const Answer& free, uint64_t recorded) {
  const memory::DeviceStats& stats = free.result.stats;
  Advice advice;
  advice.remedy = remedy;
  advice.settings = free.question.settings;
  advice.peak_allocated_bytes = stats.allocated_bytes.peak;
  advice.peak_reserved_bytes = stats.reserved_bytes.peak;
  advice.saved_bytes =
      static_cast<int64_t>(recorded) - static_cast<int64_t>(stats.reserved_bytes.peak);
  advice.replay_limitations = free.result.replay_limitations;
  return advice;
}

// Under the least and the most that the limit can have been. A limit that reserved bytes never
// reach changes nothing, but for garbage collection, which looks at it, and expandable segments,
// where more is compared with it than is then mapped.
Result<std::optional<bool>> meets_limits(const Candidate& candidate, const Limits& limits) {
  const Advice& advice = candidate.advice;
  const bool looks = advice.settings.find("garbage_collection") != std::string::npos ||
                     advice.settings.find("expandable_segments") != std::string::npos;
  if (!looks && advice.peak_reserved_bytes <= limits.at_least) return std::optional<bool>(true);
  CUFIT_TRY(least, survives_below(candidate, limits, limits.at_least));
  if (least) return std::optional<bool>(true);
  if (limits.at_most == limits.at_least) return std::optional<bool>(false);
  CUFIT_TRY(most, survives_below(candidate, limits, limits.at_most));
  return most ? std::optional<bool>() : std::optional<bool>(false);
}

Result<Advice> limited(const VerifiedRecording& verified, Advice advice,
                       const std::vector<bool>* left_out, const Limits& limits) {
  const Candidate candidate{verified, advice, left_out};
  CUFIT_TRY(survives, meets_limits(candidate, limits));
  if (advice.remedy != Remedy::without_growth || !survives) {
    CUFIT_TRY(smallest, smallest_limit(candidate, limits));
    advice.smallest_limit_bytes = smallest;
  }
  advice.survives = survives;
  return advice;
}

// What depends on the limits, of all settings side by side.
Result<std::vector<Advice>> all_limited(const VerifiedRecording& verified,
                                        const std::vector<Advice>& advice, const Limits& limits) {
  std::vector<std::optional<Result<Advice>>> results(advice.size());
  in_parallel(advice.size(), verified.program->ops.size() * advice.size() / k_advice_ops_per_thread,
              [&](size_t i) { results[i].emplace(limited(verified, advice[i], nullptr, limits)); });
  std::vector<Advice> out;
  for (std::optional<Result<Advice>>& result : results) {
    CUFIT_TRY(one, std::move(*result));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

const char* to_string(Remedy remedy) {
  switch (remedy) {
    case Remedy::settings:
      return "settings";
    case Remedy::without_pools:
      return "without_pools";
    case Remedy::without_growth:
      break;
  }
  return "without_growth";
}

EarlyTrials early_trials(const VerifiedRecording& unverified) {
  EarlyTrials out{unverified.recording.version, unverified.recording.settings, {}};
  std::vector<Question> questions;
  for (const std::string& settings : settings_to_try(unverified)) {
    const Question question = question_of(settings);
    if (!memory::asks_for_recorded(unverified, question)) questions.push_back(question);
  }
  auto inquiry =
      memory::Inquiry::make(std::make_shared<const VerifiedRecording>(unverified), questions);
  if (inquiry) out.inquiry = std::move(*inquiry);  // else it is asked again, and the error told
  return out;
}

Result<std::vector<Answer>> try_settings(const VerifiedRecording& verified,
                                         const EarlyTrials& early) {
  const bool counts = early.version == verified.recording.version &&
                      early.recorded == verified.recording.settings &&
                      memory::reasons_of(verified).empty();
  std::vector<Answer> known_ones;
  if (counts && early.inquiry) known_ones = early.inquiry->answers();
  std::vector<Answer> out;
  std::vector<Question> questions;
  std::vector<size_t> places;
  for (const std::string& settings : settings_to_try(verified)) {
    const auto known =
        std::find_if(known_ones.begin(), known_ones.end(),
                     [&](const Answer& answer) { return answer.question.settings == settings; });
    if (known != known_ones.end()) {
      out.push_back(*known);
      continue;
    }
    places.push_back(out.size());
    questions.push_back(question_of(settings));
    out.emplace_back();
  }
  CUFIT_TRY(answers, memory::ask(verified, questions));
  for (size_t i = 0; i < places.size(); ++i) out[places[i]] = std::move(answers[i]);
  return out;
}

Result<std::optional<Answer>> try_without_pools(const VerifiedRecording& verified) {
  const std::vector<memory::Op>& ops = verified.program->ops;
  const bool died = std::any_of(ops.begin(), ops.end(), [](const memory::Op& op) {
    return op.kind == memory::OpKind::failed;
  });
  if (!died || verified.program->pools == 0) return std::optional<Answer>();
  Question question = question_of(verified.settings);
  question.without_pools = true;
  CUFIT_TRY(answers, memory::ask(verified, std::span(&question, 1)));
  return std::optional(std::move(answers[0]));
}

Result<std::optional<Answer>> try_without_growth(const VerifiedRecording& verified,
                                                 const History& history) {
  if (history.trend != Trend::growing) return std::optional<Answer>();
  Question question = question_of(verified.settings);
  question.left_out = &history.grows;
  CUFIT_TRY(answers, memory::ask(verified, std::span(&question, 1)));
  return std::optional(std::move(answers[0]));
}

Result<std::vector<Advice>> advice_for(const VerifiedRecording& verified, const Trials& trials,
                                       const std::optional<Limits>& limits) {
  std::vector<Advice> out;
  const uint64_t recorded = trials.settings[0].result.stats.reserved_bytes.peak;
  for (const Answer& answer : trials.settings)
    out.push_back(advice_of(Remedy::settings, answer, recorded));
  if (limits) {
    CUFIT_TRY(with_limits, all_limited(verified, out, *limits));
    out = std::move(with_limits);
  }
  std::stable_sort(out.begin() + 1, out.end(), [](const Advice& a, const Advice& b) {
    return a.peak_reserved_bytes < b.peak_reserved_bytes;
  });
  for (const auto& [remedy, without] :
       {std::pair(Remedy::without_pools, &trials.without_pools),
        std::pair(Remedy::without_growth, &trials.without_growth)}) {
    if (!*without) continue;
    Advice advice = advice_of(remedy, **without, recorded);
    if (limits) {
      CUFIT_TRY(with_limits,
                limited(verified, std::move(advice), (*without)->question.left_out, *limits));
      advice = std::move(with_limits);
    }
    out.push_back(std::move(advice));
  }
  return out;
}

std::optional<Rescue> rescue_among(const std::vector<Advice>& advice,
                                   const std::optional<Limits>& limits) {
  if (!limits || advice.empty()) return std::nullopt;
  std::optional<Rescue> best;
  // The first are the recorded settings: a model that survives with them proves nothing.
  if (advice[0].survives.value_or(false)) return std::nullopt;
  for (size_t i = 1; i < advice.size(); ++i) {
    const Advice& one = advice[i];
    if (one.remedy != Remedy::settings || one.survives == std::optional<bool>(false)) continue;
    const Rescue rescue{one.settings, one.survives.value_or(false), true};
    if (!best || (rescue.at_least && !best->at_least)) best = rescue;
  }
  return best;
}

std::optional<Rescue> rescue_without_pools(const std::vector<Advice>& advice,
                                           const std::optional<Limits>& limits) {
  if (!limits || advice.empty() || advice[0].survives.value_or(false)) return std::nullopt;
  for (const Advice& one : advice)
    if (one.remedy == Remedy::without_pools && one.survives != std::optional<bool>(false))
      return Rescue{one.settings, one.survives.value_or(false), true};
  return std::nullopt;
}

}  // namespace cufit::analysis
