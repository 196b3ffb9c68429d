// SPDX-License-Identifier: Apache-2.0
// Simulated runs, each what a sampler would have seen of one process: training on the model of PyTorch's allocator
// (memory/allocator), and curves drawn by hand. Seeds are fixed: a run is the same everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cufit::test {

constexpr uint64_t k_mib = uint64_t{1} << 20;
constexpr uint64_t k_gib = uint64_t{1} << 30;

struct MemorySample {
  double time = 0;     // seconds since the run began
  uint64_t bytes = 0;  // as NVML has it: what the allocator holds, and the context
  double leaked = 0;   // bytes that the leak has taken; the allocator may have had them free
};

struct MemoryRun {
  std::string name;
  uint64_t card_bytes = 80 * k_gib;
  bool leaks = false;
  double leak_begins = 0;  // seconds
  std::vector<MemorySample> samples;
};

// Numbers of our own from a seed: those of <random>'s distributions differ between libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint64_t next();
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  double normal();  // mean 0, deviation 1

 private:
  uint64_t state_;
};

// A training loop. Lengths of a batch are uniform in [shortest, 1] of the longest.
struct Training {
  double hours = 1;
  double step_seconds = 0.5;
  double sample_seconds = 1;
  uint64_t model_bytes = 4 * k_gib;       // weights, gradients, state of the optimizer
  double load_seconds = 20;               // in which they come
  uint64_t activation_bytes = 8 * k_gib;  // of the longest batch
  double shortest = 1;
  unsigned epoch_steps = 1000;
  double validation = 0;  // activations of an evaluation, as a share of a training batch; 0: none
  bool empties_cache = false;     // at an epoch's end
  uint64_t checkpoint_bytes = 0;  // of one tensor at an epoch's end, freed at once
  unsigned second_model_step = 0;
  uint64_t second_model_bytes = 0;
  bool searches_algorithms = false;  // cuDNN's benchmark: large workspaces in the first steps
  // A leak: bytes that are kept, in tensors of `leak_tensor`.
  unsigned leak_from_step = 0;
  double leak_step_bytes = 0, leak_epoch_bytes = 0;
  uint64_t leak_tensor = 4 * k_mib;
};

// Ends when the card is full, as the program would.
MemoryRun run_of(const std::string& name, const Training& training, uint64_t card_bytes,
                 uint64_t seed);

std::vector<MemoryRun> development_runs();  // thresholds were chosen on these
std::vector<MemoryRun> held_out_runs();     // and not on these (held_out_runs.cc); the first
std::vector<MemoryRun>
later_held_out_runs();  // trial on them brought MemoryTrend's to_come, so these came after it

}  // namespace cufit::test
