// SPDX-License-Identifier: Apache-2.0
// What a program under `cufit bench loader` told of its loop (python/cufit_loader): one JSON object, below 64 KiB, as far as
// it came. The program wrote it, so nothing in it is believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct LoaderAlone {
  uint64_t workers = 0;
  std::optional<double> seconds;        // a batch; absent: too few came
  std::optional<double> first_seconds;  // to the first one
  uint64_t batches = 0;
  std::string error;  // why it ended; empty: it did not
};

struct LoaderAnswer {
  std::string phase;                       // "step", "loader", "done": how far it came
  std::string torch;                       // "2.8.0+cu128"
  bool cuda = false;                       // the program used a GPU
  uint64_t optimizer_steps = 0;            // seen in the loop; 0: perhaps it trains nothing
  uint64_t processes = 1;                  // of the job on this host, each with a loader
  std::vector<std::string> other_loaders;  // places of those that feed the same step
  // The loader as the program made it.
  std::string place;    // "/home/u/train.py:57"; empty: not known
  std::string dataset;  // class
  std::optional<uint64_t> batches, batch_size, prefetch_factor;
  uint64_t batch_bytes = 0, num_workers = 0;
  bool pin_memory = false, persistent_workers = false;
  bool iterable = false;         // the dataset is: each worker goes through it as it likes
  bool batch_on_device = false;  // it makes its batches on the GPU
  // While the program ran as it is.
  uint64_t watched_batches = 0;
  double wait_seconds = 0, work_seconds = 0;  // of all of these
  std::optional<double> step_seconds;         // a batch, with nothing to load
  uint64_t steps = 0;                         // of which that is the mean
  std::vector<LoaderAlone> alone;             // the program's own number of workers first
  std::optional<uint64_t> trying;             // workers of the loader alone when that was written
};

// Error{malformed}.
Result<LoaderAnswer> parse_loader_answer(std::string_view text);

}  // namespace cufit::formats
