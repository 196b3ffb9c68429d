// SPDX-License-Identifier: Apache-2.0
// The blocks of a case: warm-up until nothing moves, then the rounds that count.
#include <algorithm>
#include <cmath>

#include "commands/bench/bench_measure.h"

namespace cufit::commands {
namespace {

using resolve::BenchCase;
using resolve::BenchRun;

constexpr uint64_t k_most_calls = 1'000'000;
constexpr double k_shortest_block = 0.01;
constexpr size_t k_most_warm_up = 30;  // blocks of each side
constexpr double k_after_seconds = 2;  // for the sample behind the last block

// The sides of a round: forwards, then backwards, so that neighbours are A B and B A.
std::vector<size_t> order_of(size_t round, size_t count) {
  std::vector<size_t> out;
  for (size_t i = 0; i < count; ++i) out.push_back(round % 2 == 0 ? i : count - 1 - i);
  return out;
}

uint64_t calls_for(double block_seconds, double call_seconds) {
  const double calls = block_seconds / std::max(call_seconds, 1e-9);
  return static_cast<uint64_t>(std::clamp(std::round(calls), 1.0, double{k_most_calls}));
}

}  // namespace

bool BenchMeasure::ask_block(const Side& side, double seconds, BenchRun& run,
                             formats::BenchBlock& out) {
  auto said = side.process->block(run.calls, seconds);
  run.trouble = std::move(said.refusal);
  out = said.value;
  return run.trouble.kind.empty();
}

// Of many sides the fewest that were allowed would tell nothing.
size_t BenchMeasure::rounds_of(const std::vector<Side>& sides) const {
  return std::max(plan_.rounds, resolve::rounds_for(sides.size()));
}

double BenchMeasure::block_seconds(const std::vector<Side>& sides) const {
  const size_t blocks = rounds_of(sides) * sides.size();
  return std::max(plan_.seconds / static_cast<double>(blocks), k_shortest_block);
}

// Blocks alternate here as well, so that the card gets as warm as it will be.
void BenchMeasure::warm_up(const std::vector<Side>& sides, BenchCase& one) {
  const double seconds = block_seconds(sides);
  Progress progress(one.workload + ": warm-up");
  std::vector<std::vector<double>> times(sides.size());
  for (BenchRun& run : one.runs) run.calls = calls_for(seconds, run.loaded.seconds);
  for (size_t round = 0; round < k_most_warm_up && !stopped(); ++round) {
    bool all_steady = true;
    for (const size_t i : order_of(round, sides.size())) {
      BenchRun& run = one.runs[i];
      formats::BenchBlock block;
      if (!run.trouble.kind.empty() || !ask_block(sides[i], seconds, run, block)) continue;
      const double call = block.seconds / static_cast<double>(block.calls);
      times[i].push_back(call);
      run.calls = calls_for(seconds, call);
      ++run.warm_up_blocks;
      run.steady = resolve::is_steady(times[i]);
      all_steady = all_steady && run.steady;
    }
    progress.show_count(round + 1, k_most_warm_up);
    if (all_steady) return;
  }
}

void BenchMeasure::measure(const std::vector<Side>& sides, BenchCase& one) {
  Progress progress(one.workload);
  const size_t rounds = rounds_of(sides);
  const double seconds = block_seconds(sides);
  for (size_t round = 0; round < rounds && !stopped(); ++round) {
    for (const size_t i : order_of(round, sides.size())) {
      formats::BenchBlock block;
      if (one.runs[i].trouble.kind.empty() && ask_block(sides[i], seconds, one.runs[i], block))
        one.runs[i].blocks.push_back(block);
    }
    progress.show_count(round + 1, rounds);
  }
}

void BenchMeasure::add_card(const std::vector<Side>& sides, BenchCase& one) {
  if (!card_) return;
  double last = 0;
  for (const BenchRun& run : one.runs)
    for (const formats::BenchBlock& block : run.blocks) last = std::max(last, block.end);
  for (int i = 0; i < 20 && sampler_->newest().time < last && !stopped(); ++i)
    look_at_card(k_after_seconds / 20);
  for (size_t i = 0; i < one.runs.size(); ++i) {
    BenchRun& run = one.runs[i];
    std::vector<watch::TimeSpan> spans;
    double items = 0;
    for (const formats::BenchBlock& block : run.blocks) {
      spans.push_back({block.begin, block.end});
      items += static_cast<double>(block.calls) * run.loaded.items;
    }
    watch::CardLoad load = card_->load_in(spans);
    if (load.joules && items > 0) run.joules_per_item = *load.joules / items;
    run.sm_clock_min_mhz = load.sm_clock_min_mhz;
    run.sm_clock_max_mhz = load.sm_clock_max_mhz;
    run.throttle = std::move(load.throttle);
    if (sides[i].process->pid() <= 0) continue;
    run.process_bytes = card_->process_bytes(static_cast<uint32_t>(sides[i].process->pid()));
    card_->forget_process(static_cast<uint32_t>(sides[i].process->pid()));
  }
}

}  // namespace cufit::commands
