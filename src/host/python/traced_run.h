// SPDX-License-Identifier: Apache-2.0
// A training program run for a few steps on a pretended GPU: a folder with the tracer
// (python/cufit_tracer) as sitecustomize.py stands first on the PYTHONPATH of this one child,
// which writes an event file (formats/model/trace_events.h). What the child writes to its stdout or
// stderr goes to cufit's stderr. Used by `cufit fit`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "host/process/child_process.h"

namespace cufit::host {

// Where the program was some seconds ago.
struct TraceProgress {
  uint64_t steps = 0;
  std::string source;  // "train.py:57", the user's own line; empty: not known
};

struct TracedRank {
  uint64_t number = 0;
  bool last = false;  // the highest, whichever that is
};

struct TraceOptions {
  std::vector<std::string> command;  // program and arguments; the Python for the next two
  std::string function;              // "module:name" that the tracer itself calls; empty: none
  std::string model;                 // JSON for the program of python/cufit_model; empty: none
  std::optional<uint64_t> batch;     // to be set by the tracer; nullopt: the program's own
  // Of the program's own DataLoaders only those of this size are given another; nullopt: all.
  std::optional<uint64_t> replaced_batch;
  std::optional<uint64_t> seq;  // tokens of a sequence, likewise
  uint64_t steps = 0;
  // Where the steps are not of one size the tracer goes on up to these; nullopt: as it sees fit.
  std::optional<uint64_t> most_steps;
  // Ranks of a distributed program; nullopt: as its launcher says, 0: that, and one where it has
  // none. Which of them is traced.
  std::optional<uint64_t> world;
  TracedRank rank;
  std::string sent;     // folder where ranks leave what they tell each other; empty: none
  std::string variant;  // "plan,bf16": what plans are told of and what is switched on; empty: none
  std::string gpu;      // "NVIDIA H200,9.0,150110011392": name, capability, bytes in all
  std::string cudnn;    // JSON: GPUs for which cuDNN is asked; empty: it is not
  std::string device;   // JSON of the same form: properties of `gpu`, among others
  std::string event_file;  // absolute path, replaced; empty: a file that goes with the answer
  // Time limit: the tracer ends the program, which says at which line; 0: none.
  uint64_t seconds = 0;
  // The same, counted from its last operator of PyTorch; a number of operators is bounded with it,
  // so that a busy machine ends no trace that an idle one would not. 0: neither is.
  uint64_t idle_seconds = 0;
  // About every second.
  std::function<void(double seconds, const TraceProgress& progress)> watch;
};

struct TracedRun {
  int exit_code = 0;       // 128 + signal where one ended it
  bool timed_out = false;  // made to end: the tracer itself did not come to it
  TraceProgress progress;  // the last
  // What it wrote; null where no Python below this command read the tracer and imported torch.
  std::shared_ptr<const ByteSource> events;
  std::string said;  // what it wrote last, up to 256 KiB
  double seconds = 0;
  uint64_t peak_bytes = 0;  // of the machine's memory, resident
};

// Error{not_found} where the program cannot be started, Error{cancelled} where a signal asked cufit
// to end. Nothing that it started runs on.
Result<TracedRun> traced_run(const TraceOptions& options, Interrupts& interrupts);
// Several at once. Of the first alone what it writes goes to cufit's stderr.
Result<std::vector<TracedRun>> traced_runs(std::span<const TraceOptions> options,
                                           Interrupts& interrupts);

// What is put into the folder: the text of the tracer, and the library that it loads before torch
// (src/host/python/no_accelerator.c) as `no_accelerator.so`.
const char* fit_tracer();
const char* fit_model_program();
std::string_view fit_no_accelerator();
// What srun, sbatch, scontrol, mpirun and mpiexec are for the child: none of them is started.
std::string_view fit_rank_shim();

}  // namespace cufit::host
