// SPDX-License-Identifier: Apache-2.0
// One run of a program under the tracer, or two side by side: what it is given, its lines on stderr,
// what its event file is called, why there is none. Used by fit_tracing.cc, which says which runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/fit/fit_progress.h"
#include "commands/fit/fit_tracing.h"

namespace cufit::commands {

class TraceRuns {
 protected:
  TraceRuns(const Context& context, TracingPlan plan, host::Interrupts& interrupts)
      : context_(context),
        plan_(std::move(plan)),
        options_(plan_.run),
        progress_(context),
        interrupts_(interrupts) {
    out_.program = plan_.program;
  }

  // Adds a trace, or says in `out_.failure` why there is none.
  Result<void> trace(std::optional<uint64_t> batch);
  // Side by side. One that fails so is traced once more, alone: programs that were not made for it
  // get into each other's way.
  Result<void> trace_both(const std::vector<std::optional<uint64_t>>& batches);
  // The batch size of a trace, and that of the program where its command says it. In the kept file,
  // too: read again, it has to answer as it does now.
  Result<void> say_batch(formats::TraceEvents& events, const std::string& file, uint64_t batch);

  std::string first_file() const { return files_.empty() ? std::string() : files_.front(); }

  const Context& context_;
  TracingPlan plan_;
  host::TraceOptions options_;      // of the next run
  std::vector<std::string> files_;  // that were kept
  std::optional<uint64_t> shown_;   // by the last run's DataLoader
  uint64_t peak_bytes_ = 0;         // of the machine's memory, the most that a trace took
  FitProgress progress_;
  FitTraces out_;

 private:
  void prepare_run(std::optional<uint64_t> batch);
  Result<void> take(const host::TracedRun& run, std::optional<uint64_t> batch);
  Result<void> name_batch(formats::TraceEvents& events, std::optional<uint64_t> batch);

  std::optional<std::string> asked_cudnn_;  // the last variant of the program that it was asked for
  int kept_ = 0;
  host::Interrupts& interrupts_;
};

}  // namespace cufit::commands
