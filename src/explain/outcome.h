// SPDX-License-Identifier: Apache-2.0
// How the runs in a text end: where programs say that they failed, and where they say that they
// went on and did their work. A cause that stands before the one or the other is judged by it
// (confidence_cap.h). Pure; one pass over the lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::explain {

// The message of an exception, as it stands in a text.
struct Failure {
  uint64_t line = 0;
  bool ordinary = false;  // the program's own logic: ValueError, KeyError, ...
  bool memory = false;    // memory ran out
  bool chained = false;   // raised while the one before was handled: mostly its consequence
};

// listed: the driver lists a GPU; found: torch finds one; run: training steps, a served model, a
// finished build or installation.
struct Success {
  enum class Kind { listed, found, run };
  uint64_t line = 0;
  Kind kind = Kind::run;
  std::string text;
};

struct Outcome {
  std::vector<Failure> failures;   // in the order of the text
  std::vector<Success> successes;  // the last of each kind
  std::vector<uint64_t> coped;     // lines that say "optional", "skipping", "falling back"
  uint64_t last_trouble = 0;       // the last line that speaks of a failure in any words
  bool reports_error = false;      // "error", "failed", ... of something that was not coped with
  bool on_cpu = false;             // the CPU is spoken of: a run on it proves nothing of the GPU
  bool interrupted = false;        // all that failed is that the user stopped the program
  bool several_gpus = false;       // the kernel names failures of GPUs at several addresses
  bool told = true;                // somebody writes sentences, or the text was not read
};

Outcome read_outcome(std::span<const formats::TextLine> lines);

}  // namespace cufit::explain
