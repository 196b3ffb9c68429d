// SPDX-License-Identifier: Apache-2.0
#include "explain/reading.h"

#include <algorithm>
#include <cmath>

#include "explain/encoder.h"

namespace cufit::explain {
namespace {

constexpr size_t k_longest = 4096;      // bytes
constexpr double k_least_memory = 0.1;  // probability that the text tells of memory
// How much the words and how much the reading counts. Of 623 reports that neither had seen, words
// and signs name 423 first and 553 among three; so joined it is 464 and 576 (with 0.5 and 0.3, or
// 0.6 and 0.4: 458 and 454).
constexpr double k_words = 0.5, k_reading = 0.5;
constexpr double k_reading_least = 1e-6;  // no voice makes a cause impossible

}  // namespace

Votes with_reading(Votes votes, std::span<const formats::TextLine> lines) {
  const auto memory = std::find_if(votes.causes.begin(), votes.causes.end(),
                                   [](const WordVote& vote) { return vote.memory; });
  if (memory == votes.causes.end() || memory->kind < k_least_memory) return votes;
  std::string text;
  for (const formats::TextLine& line : lines) text += line.text + "\n";
  if (text.size() > k_longest) return votes;
  const std::vector<CauseReading> readings = read_report(builtin_encoder(), text);
  if (readings.empty()) return votes;
  double sum = 0;
  for (WordVote& vote : votes.causes) {
    if (!vote.memory) continue;
    const auto reading =
        std::find_if(readings.begin(), readings.end(),
                     [&](const CauseReading& one) { return one.cause == vote.cause; });
    if (reading == readings.end()) continue;
    vote.of_kind = std::pow(std::max(vote.of_kind, k_reading_least), k_words) *
                   std::pow(std::max(reading->probability, k_reading_least), k_reading);
    sum += vote.of_kind;
  }
  for (WordVote& vote : votes.causes) {
    if (!vote.memory || sum <= 0) continue;
    vote.of_kind /= sum;
    vote.probability = vote.kind * vote.of_kind;
  }
  std::stable_sort(
      votes.causes.begin(), votes.causes.end(),
      [](const WordVote& a, const WordVote& b) { return a.probability > b.probability; });
  return votes;
}

}  // namespace cufit::explain
