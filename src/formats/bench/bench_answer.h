// SPDX-License-Identifier: Apache-2.0
// What a process of `cufit bench` says (python/cufit_bench): one JSON object a line, below 64 KiB. The process runs a
// workload of the user's, so nothing in it is believed: texts are printable and short, numbers in range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cufit::formats {

// Why there is no answer. Of the process: no_torch, no_cuda (a torch without CUDA), no_gpu, precision (the device has it
// not), workload (a file that breaks its contract), oom, failed (it raised). Of cufit: garbage (the line is no answer), and
// what host/python/bench_child.h adds.
struct BenchRefusal {
  std::string kind;  // empty: none
  std::string why;
};

struct BenchGpu {
  std::string name, capability;  // "NVIDIA H200", "9.0"
  std::string uuid;              // "GPU-..."; empty: not told
  uint64_t memory_bytes = 0;
};

struct BenchHello {
  std::string python, torch;      // "3.12.3", "2.8.0+cu128"
  std::string cuda;               // of the build: "12.8"; empty: none
  std::optional<uint64_t> cudnn;  // 91002
  uint64_t threads = 0;           // of torch on the CPU; 0: not asked
  std::optional<BenchGpu> gpu;
};

struct BenchLoaded {
  double items = 0;  // that one call does
  std::string unit;  // "images"
  uint64_t batch = 0;
  std::string shape;   // "training, 3x224x224, SGD"
  double seconds = 0;  // of the second call
};

struct BenchBlock {
  uint64_t calls = 0;
  double seconds = 0;                // of all
  double begin = 0, end = 0;         // since the epoch
  std::optional<uint64_t> reserved;  // most bytes that torch held meanwhile
};

template <class T>
struct BenchAnswer {
  T value;
  BenchRefusal refusal;
};

BenchAnswer<BenchHello> parse_bench_hello(std::string_view line);
BenchAnswer<BenchLoaded> parse_bench_loaded(std::string_view line);
BenchAnswer<BenchBlock> parse_bench_block(std::string_view line);

}  // namespace cufit::formats
