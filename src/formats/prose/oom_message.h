// SPDX-License-Identifier: Apache-2.0
// Numbers of out-of-memory messages. Read are the allocator's own formats of every release (with
// "cached" up to 1.3, "reserved in total" up to 2.0, whole sentences since 2.1, the clause about
// private pools since 2.4), cudaMallocAsync's four lines, HAMi's quota line, vLLM's start-up
// message, and loose prose ("reserved ~113 GiB, allocated ~57 GiB"). Sizes are bytes; what a
// message does not say stays empty. Wording per release: pytorch c10/cuda/CUDACachingAllocator.cpp
// and CUDAMallocAsyncAllocator.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

struct OomProcess {
  uint64_t pid = 0;
  uint64_t bytes = 0;
};

struct OomMessage {
  uint64_t line = 0;
  // "allocator" (with numbers of the caching allocator), "malloc_async", "hami", "vllm", "prose"
  std::string kind;
  std::optional<uint32_t> gpu;  // ordinal within the process
  // What the allocator asked the driver for: 2 MiB or 20 MiB for small requests, else the request
  // rounded up to 2 MiB.
  std::optional<uint64_t> tried;
  std::optional<uint64_t> total, free;  // cudaMemGetInfo at the failure
  std::optional<uint64_t> allocated;    // held by live tensors, private pools included
  std::optional<uint64_t> reserved;     // allocated + cached by the allocator
  std::optional<uint64_t> pools;        // of it in private pools (CUDA graphs)
  std::optional<uint64_t> allowed;      // a limit below the card's size
  // This process by NVML; UINT64_MAX = NVML's "not available" (17179869184.00 GiB, as under WSL)
  std::optional<uint64_t> own;
  std::vector<OomProcess> others;  // "Process N has ..."; may be this process by its host pid
};

// In the order of the text, at most 16; the one with the most numbers of each kind is what counts.
std::vector<OomMessage> parse_oom_messages(std::span<const TextLine> lines);

// "1.50 GiB", "20 bytes", "512MB", "80G": bytes; empty when it is no size. Numbers beyond 2^64
// saturate.
std::optional<uint64_t> parse_size(std::string_view number, std::string_view unit);

// The line without the advice that PyTorch appends to every message of its kind whatever the reason
// ("If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation
// ...", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.").
std::string without_hint(std::string_view line);

}  // namespace cufit::formats
