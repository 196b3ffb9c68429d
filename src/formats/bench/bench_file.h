// SPDX-License-Identifier: Apache-2.0
// A result of `cufit bench` (schema cufit.bench/1) as `cufit resolve --measured` needs it: which torch ran faster than which.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct BenchTorch {
  std::string version, tag;  // "2.8.0", "cu128"; empty: the environment had none
};

struct BenchPair {
  size_t base = 0, other = 0;           // places in BenchFile::torches
  double ratio = 0, low = 0, high = 0;  // of the other's rate to that of the base
  std::string workload, precision;      // of the other; empty: none
};

struct BenchFile {
  std::string gpu;  // "NVIDIA H200"; empty: the CPU
  std::vector<BenchTorch> torches;
  std::vector<BenchPair> pairs;  // of different environments in one precision
  // Somebody else was on the card, or one of `pairs` was still changing when it was measured.
  bool doubtful = false;
};

constexpr size_t k_most_bench_file = 16u << 20;

// Error{malformed} names the file and the member; another schema is Error{unsupported}.
Result<BenchFile> parse_bench_file(std::string_view text, const std::string& file);

// "2.8.0+cu128" in its parts; without a local part the tag is that of `cuda` ("12.8"), "cpu" where that is empty.
BenchTorch bench_torch(std::string_view version, std::string_view cuda);

}  // namespace cufit::formats
