// SPDX-License-Identifier: Apache-2.0
// GPU memory while a program runs: a child process asks NVML four times a second, so that there is
// a state from before the program died: its own memory is freed at that moment, or some time before
// where it ends by an exception. A driver that hangs or crashes ends the samples and nothing else.
// Used by host/process/supervise.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "facts/supervised_run.h"
#include "host/files/host.h"

namespace cufit::host {

struct MemorySample {
  double seconds = 0;  // monotonic
  std::vector<facts::GpuMemory> gpus;
};

// Of the last ten seconds up to `end` the one with most in use, the latest of these; null: none.
const MemorySample* fullest_of(const std::deque<MemorySample>& samples, double end);

class MemorySampler {
 public:
  explicit MemorySampler(const Host& host);  // starts the child
  ~MemorySampler();                          // ends it
  MemorySampler(const MemorySampler&) = delete;
  MemorySampler& operator=(const MemorySampler&) = delete;

  int pipe() const { return pipe_; }  // for poll(); -1 = no more samples come
  void read_some();                   // what is there; never waits
  const std::deque<MemorySample>& samples() const { return samples_; }  // of some twelve seconds

 private:
  int pipe_ = -1;
  pid_t child_ = -1;
  std::string buffer_;
  std::vector<facts::GpuMemory> current_;
  std::deque<MemorySample> samples_;
};

}  // namespace cufit::host
