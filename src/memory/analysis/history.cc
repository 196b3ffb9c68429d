// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/history.h"

#include <algorithm>

#include "memory/analysis/allocated_walk.h"

namespace cufit::analysis {
namespace {

constexpr uint64_t k_least_growth = 1u << 20;  // less is bookkeeping
constexpr size_t k_least_steps = 3;

uint64_t median(std::vector<uint64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<StepUse> uses_of(const Steps& steps, const Lifetimes& lifetimes,
                             const memory::Program& program) {
  std::vector<StepUse> uses;
  AllocatedWalk allocated(program, lifetimes);
  for (size_t i = 0; i < steps.begins.size(); ++i) {
    StepUse use;
    use.step = steps.first + static_cast<uint32_t>(i);
    use.begin = steps.begins[i];
    use.finished = i < steps.finished;
    const bool last = i + 1 == steps.begins.size();
    use.end = last ? lifetimes.work_end + 1 : steps.begins[i + 1];
    if (use.begin >= lifetimes.events) break;
    use.end = std::min(std::max(use.end, use.begin + 1), lifetimes.events);
    // Of two that begin at one event the walk is past the first's begin.
    const bool again = !uses.empty() && uses.back().begin == use.begin;
    use.begin_bytes =
        again ? uses.back().begin_bytes : allocated.to(use.begin == 0 ? 0 : use.begin - 1);
    const AllocatedWalk::Peak peak = allocated.highest(use.begin, use.end);
    use.peak_event = peak.event;
    use.peak_bytes = peak.bytes;
    uses.push_back(use);
  }
  return uses;
}

// The second step begins with the optimizer's state, so growth counts from there.
bool grows_steadily(const std::vector<StepUse>& uses, uint64_t& per_step) {
  if (uses.size() < k_least_steps + 1) return false;
  std::vector<uint64_t> rises;
  size_t up = 0;
  for (size_t i = 2; i < uses.size(); ++i) {
    const bool rose = uses[i].begin_bytes > uses[i - 1].begin_bytes;
    up += rose ? 1 : 0;
    rises.push_back(rose ? uses[i].begin_bytes - uses[i - 1].begin_bytes : 0);
  }
  per_step = median(rises);
  const uint64_t first = uses[1].begin_bytes, last = uses.back().begin_bytes;
  const uint64_t least = std::max(k_least_growth, uses.back().peak_bytes / 100);
  return up * 4 >= rises.size() * 3 && last > first && last - first >= least;
}

// A second model, a cache that is filled once: what steps begin with rises, but in few of them.
bool jumps(const std::vector<StepUse>& uses) {
  if (uses.size() < k_least_steps) return false;
  const uint64_t first = uses[1].begin_bytes, last = uses.back().begin_bytes;
  return last > first && last - first >= std::max(first / 4, k_least_growth);
}

}  // namespace

const char* to_string(Trend trend) {
  switch (trend) {
    case Trend::steady:
      return "steady";
    case Trend::growing:
      return "growing";
    case Trend::spiking:
      return "spiking";
    case Trend::jumping:
      return "jumping";
    case Trend::unknown:
      break;
  }
  return "unknown";
}

History history_of(const Lifetimes& lifetimes, const std::vector<Category>& categories,
                   const Steps& steps, const memory::Program& program) {
  History history;
  history.steps = uses_of(steps, lifetimes, program);
  history.grows.assign(lifetimes.rows.size(), false);
  std::vector<uint64_t> peaks;
  for (const StepUse& use : history.steps) {
    if (!use.finished) continue;
    peaks.push_back(use.peak_bytes);
    history.highest_before_bytes = std::max(history.highest_before_bytes, use.peak_bytes);
  }
  history.usual_peak_bytes = median(peaks);
  if (history.steps.size() < k_least_steps) return history;
  const uint32_t second = history.steps[1].begin;
  const uint32_t last = history.steps.back().begin;
  for (size_t i = 0; i < lifetimes.rows.size(); ++i) {
    const Lifetime& row = lifetimes.rows[i];
    if (row.alloc_event == k_before || row.alloc_event < second || row.alloc_event >= last)
      continue;
    if (!is_kept(row, lifetimes) || categories[i] == Category::gradients ||
        categories[i] == Category::private_pools)
      continue;
    history.grows[i] = true;
  }
  uint64_t per_step = 0;
  if (grows_steadily(history.steps, per_step)) {
    history.trend = Trend::growing;
    history.growth_per_step_bytes = per_step;
    for (size_t i = 0; i < lifetimes.rows.size(); ++i) {
      if (!history.grows[i]) continue;
      history.growth_bytes += lifetimes.rows[i].block_bytes;
      ++history.growing_blocks;
    }
    return history;
  }
  history.grows.assign(lifetimes.rows.size(), false);
  uint64_t highest = 0;
  for (const StepUse& use : history.steps) highest = std::max(highest, use.peak_bytes);
  const bool spikes =
      history.usual_peak_bytes > 0 &&
      highest - std::min(highest, history.usual_peak_bytes) >= history.usual_peak_bytes / 4;
  history.trend = spikes ? Trend::spiking : jumps(history.steps) ? Trend::jumping : Trend::steady;
  return history;
}

}  // namespace cufit::analysis
