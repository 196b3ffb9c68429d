// SPDX-License-Identifier: Apache-2.0
// GPU memory while a program runs: a child process asks NVML four times a second, so that there is a
// state from just before the program died (its own memory is freed at that moment). A driver that
// hangs or crashes ends the samples and nothing else. Used by host/supervise.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "host/host.h"

namespace cufit::host {

struct GpuMemory {
  uint32_t index = 0;  // NVML's: by PCI address
  std::string name;
  uint64_t used_bytes = 0, total_bytes = 0;
};

class MemorySampler {
 public:
  explicit MemorySampler(const Host& host);  // starts the child
  ~MemorySampler();                          // ends it
  MemorySampler(const MemorySampler&) = delete;
  MemorySampler& operator=(const MemorySampler&) = delete;

  int pipe() const { return pipe_; }  // for poll(); -1 = no more samples come
  void read_some();                   // what is there; never waits
  const std::vector<GpuMemory>& last() const { return last_; }
  double last_seconds() const { return last_seconds_; }  // monotonic; 0 = none came

 private:
  int pipe_ = -1;
  pid_t child_ = -1;
  std::string buffer_;
  std::vector<GpuMemory> current_, last_;
  double last_seconds_ = 0;
};

}  // namespace cufit::host
