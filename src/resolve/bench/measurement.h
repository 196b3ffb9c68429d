// SPDX-License-Identifier: Apache-2.0
// What `cufit bench` measured, and what follows from it: rates with their intervals, comparisons, the fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/bench/bench_answer.h"
#include "resolve/bench/statistics.h"

namespace cufit::resolve {

struct BenchEnvironment {
  std::string
      name;  // class of a lock, or the folder as it was typed; the second of one name has " (2)" behind it
  std::string folder;  // absolute
  std::string interpreter;
  bool is_class = false;
  formats::BenchHello hello;
  formats::BenchRefusal trouble;  // it did not get as far as a workload
};

// One environment in one precision.
struct BenchRun {
  size_t environment = 0;
  std::string precision;  // "bf16"; empty: the workload has none
  formats::BenchRefusal trouble;
  formats::BenchLoaded loaded;
  uint64_t calls = 0;                       // of a block
  std::vector<formats::BenchBlock> blocks;  // one a round
  size_t warm_up_blocks = 0;
  bool steady = false;  // at the end of the warm-up
  std::optional<uint64_t> process_bytes;
  std::optional<double> joules_per_item;
  std::optional<uint32_t> sm_clock_min_mhz, sm_clock_max_mhz;
  std::vector<std::string> throttle;
  std::optional<Interval> rate;  // items a second; of judge()
};

struct BenchComparison {
  size_t base = 0, other = 0;                // places in BenchCase::runs
  Interval ratio;                            // of the other's rate to that of the base
  Difference difference = Difference::none;  // of the other
};

struct BenchCase {
  std::string workload;  // "resnet50", or the path of a file
  std::vector<BenchRun> runs;
  std::vector<BenchComparison> comparisons;  // each two that were measured, once
};

struct BenchNeighbour {
  uint32_t pid = 0;
  std::string command;
  std::optional<uint64_t> memory_bytes;
};

struct BenchMeasurement {
  std::string device;  // "0", "cpu"
  std::string driver;  // empty: not told
  std::vector<BenchEnvironment> environments;
  std::vector<BenchCase> cases;
  std::vector<BenchNeighbour> neighbours;
  std::string no_nvml;  // why energy, clocks and neighbours are not known
  size_t rounds = 0;
  double seconds = 0;  // asked for, a case
};

// Most bytes that torch held on the device in any block.
std::optional<uint64_t> reserved_bytes(const BenchRun& run);

// Fills rates and comparisons. What has trouble has none.
void judge(BenchCase& one);

// Places of the runs that no other one beats beyond the noise, the fastest first; those of a circle beat each other, so none
// of them is beaten. Empty where none was measured.
std::vector<size_t> fastest_of(const BenchCase& one);

// The comparison of two runs as that of `other` to `base`; nullopt: one of them was not measured.
std::optional<BenchComparison> comparison_of(const BenchCase& one, size_t base, size_t other);

}  // namespace cufit::resolve
