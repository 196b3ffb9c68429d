// SPDX-License-Identifier: Apache-2.0
// Samples of the GPUs, for as long as one of these lives: a child asks NVML at an interval and tells each sample. A driver
// that hangs or crashes takes the child alone: then the last good sample stays, marked stale, and another child is tried.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "facts/gpu_sample.h"
#include "host/files/host.h"

namespace cufit::host {

struct SamplerOptions {
  std::string library_dir;      // of libnvidia-ml.so.1; empty = the loader's search
  double interval_seconds = 1;  // from sample to sample
  double limit_seconds = 5;     // beyond it, without an answer, the driver is stalled
  // The first answer: without the persistence daemon each GPU's firmware is brought up first, 3 s apiece.
  double start_seconds = 10;
  bool all_each_time = false;  // also what costs the driver much: energy, replays, heat
};

class GpuSampler {
 public:
  GpuSampler(const Host& host, SamplerOptions options);
  ~GpuSampler();  // the child is ended, never waited for where it hangs in the kernel
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  // Waits for a sample, at most so long; true: newest() is another one than before, or became stale. Call it all the time:
  // it also looks after the child.
  bool wait(double seconds);
  // Without owners of processes. Before the first answer it is empty, with `stalled_seconds` where that is late.
  const facts::GpuSample& newest() const;
  bool has_answered() const;
  std::string call() const;  // the driver's function that the child is in, or was last; empty: none
  int descriptor() const;    // for poll(): readable where wait(0) has something; -1 = none now
  // Children that do not even die of SIGKILL: they sit in the driver.
  size_t left_behind() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cufit::host
