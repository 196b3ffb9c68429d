// SPDX-License-Identifier: Apache-2.0
#include "unit/watch/memory_runs.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/format.h"
#include "memory/allocator/caching_allocator.h"

namespace cufit::test {
namespace {

constexpr uint64_t k_context = 518 * k_mib;  // measured on an H100 (driver 580, torch 2.11)
constexpr unsigned k_layers = 12;

// One process: its allocator, its clock and who samples it.
class Process {
 public:
  Process(const Training& training, uint64_t card, uint64_t seed)
      : training_(training),
        dice_(seed),
        memory_(card - k_context),
        allocator_(options(card), memory_) {}

  MemoryRun run(const std::string& name, uint64_t card) {
    MemoryRun out{name, card, false, 0, {}};
    load();
    const unsigned steps = static_cast<unsigned>(training_.hours * 3600 / training_.step_seconds);
    for (unsigned step = 0; step < steps && !full_; ++step) {
      if (leaks_at(step) && !out.leaks) {
        out.leaks = true;
        out.leak_begins = time_;
      }
      train(step);
      if ((step + 1) % training_.epoch_steps == 0) end_epoch();
    }
    out.samples = std::move(samples_);
    return out;
  }

 private:
  static memory::AllocatorOptions options(uint64_t card) {
    memory::AllocatorOptions out;
    out.total_memory = card;
    return out;
  }
  bool leaks_at(unsigned step) const {
    return step >= training_.leak_from_step &&
           (training_.leak_step_bytes > 0 || training_.leak_epoch_bytes > 0);
  }
  memory::BlockHandle take(double bytes) {
    const memory::BlockHandle got =
        allocator_.malloc(static_cast<uint64_t>(std::max(bytes, 512.0)));
    if (!got) full_ = true;
    return got;
  }
  void give(memory::BlockHandle handle) {
    if (handle) allocator_.free(handle);
  }
  void pass(double seconds) {
    time_ += seconds;
    while (next_sample_ <= time_) {
      samples_.push_back(
          {next_sample_, allocator_.stats().reserved_bytes.current + k_context, leaked_});
      next_sample_ += training_.sample_seconds;
    }
  }
  void load() {
    constexpr unsigned k_parts = 100;
    for (unsigned i = 0; i < k_parts; ++i) {
      take(static_cast<double>(training_.model_bytes) / k_parts);
      pass(training_.load_seconds / k_parts);
    }
  }
  // Forward takes activations layer by layer, backward gives them back in the other order, each beside a gradient.
  void pass_through(double bytes) {
    std::deque<memory::BlockHandle> kept;
    for (unsigned layer = 0; layer < k_layers && !full_; ++layer) {
      kept.push_back(take(bytes / k_layers * 0.75));
      const memory::BlockHandle passing = take(bytes / k_layers * 0.4);
      kept.push_back(take(bytes / k_layers * 0.25));
      give(passing);
    }
    while (!kept.empty()) {
      const memory::BlockHandle gradient =
          full_ ? memory::BlockHandle{} : take(bytes / k_layers * 0.5);
      give(kept.back());
      kept.pop_back();
      give(gradient);
    }
  }
  void leak(double bytes) {
    owed_ += bytes;
    leaked_ += bytes;
    for (; owed_ >= static_cast<double>(training_.leak_tensor) && !full_;
         owed_ -= static_cast<double>(training_.leak_tensor))
      take(static_cast<double>(training_.leak_tensor));
  }
  void train(unsigned step) {
    const double length = dice_.between(training_.shortest, 1);
    if (training_.searches_algorithms && step < 5)
      give(take(static_cast<double>(training_.activation_bytes) * dice_.between(0.1, 0.5)));
    if (step == training_.second_model_step && training_.second_model_bytes != 0)
      take(static_cast<double>(training_.second_model_bytes));
    pass_through(static_cast<double>(training_.activation_bytes) * length);
    if (step >= training_.leak_from_step) leak(training_.leak_step_bytes * length);
    pass(training_.step_seconds * dice_.between(0.8, 1.2) * (0.5 + length / 2));
  }
  void end_epoch() {
    if (training_.validation > 0)
      for (unsigned i = 0; i < 20 && !full_; ++i) {
        const memory::BlockHandle scores =
            take(static_cast<double>(training_.activation_bytes) * training_.validation);
        pass(training_.step_seconds * 2);
        give(scores);
      }
    if (training_.checkpoint_bytes != 0) {
      const memory::BlockHandle copy = take(static_cast<double>(training_.checkpoint_bytes));
      pass(20);
      give(copy);
    }
    leak(training_.leak_epoch_bytes);
    if (training_.empties_cache) allocator_.empty_cache();
  }

  Training training_;
  Dice dice_;
  memory::SyntheticMemory memory_;
  memory::CachingAllocator allocator_;
  std::vector<MemorySample> samples_;
  double time_ = 0, next_sample_ = 0, owed_ = 0, leaked_ = 0;
  bool full_ = false;
};

}  // namespace

uint64_t Dice::next() {  // splitmix64
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double Dice::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * uniform());
}

MemoryRun run_of(const std::string& name, const Training& training, uint64_t card_bytes,
                 uint64_t seed) {
  return Process(training, card_bytes, seed).run(name, card_bytes);
}

}  // namespace cufit::test
