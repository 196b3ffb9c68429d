// SPDX-License-Identifier: Apache-2.0
// What follows from the times of a loader alone and of a step alone: is the device starved, and what feeds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/bench/loader_answer.h"

namespace cufit::resolve {

// What this host has; nullopt: not known, or no limit.
struct LoaderHost {
  std::optional<uint64_t> cpus;  // this process may use
  std::optional<double> cpu_limit;
  std::optional<uint64_t> shm_bytes;
};

struct LoaderAdvice {
  enum class Verdict {
    not_told,   // a time is missing
    fed,        // batches come sooner than they are used: it may stay as it is
    unsteady,   // the loader alone is fast enough, yet the program waited for it: bursts
    restarts,   // within an epoch it is fed, but each epoch begins with workers that start
    more,       // another number of workers feeds it
    host_bound  // no number that was tried feeds it
  };
  Verdict verdict = Verdict::not_told;
  double loader_seconds = 0, step_seconds = 0;  // a batch, with the program's own number of workers
  double waited = 0;                            // part of the watched time, 0 to 1
  double start_seconds = 0;                     // of an epoch, until the first batch; 0: not told
  // To be set; without one the loader stays as it is.
  std::optional<uint64_t> workers;
  double best_seconds = 0;  // a batch with these, or with what it is now
  bool pin_memory = false, persistent_workers = false;  // arguments to set beside it
  std::optional<uint64_t> prefetch;                     // batches a worker
  // More workers are meant than the program had, and each may go through the whole iterable dataset: samples would come
  // several times.
  bool may_repeat_samples = false;
  uint64_t shm_bytes = 0;     // that batches on their way may take, with these workers
  bool shm_is_small = false;  // and /dev/shm is not larger
};

// The words of the DataLoader that the advice sets: "num_workers=4, pin_memory=True, persistent_workers=True"; empty: none.
std::string loader_arguments(const LoaderAdvice& advice);

LoaderAdvice advise(const formats::LoaderAnswer& answer, const LoaderHost& host);

// Counts that are tried where none were asked for: 0, 1, 2, 4 ... up to what the host's CPUs can run. The last one is that.
std::vector<uint64_t> worker_counts(const LoaderHost& host);

}  // namespace cufit::resolve
