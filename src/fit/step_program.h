// SPDX-License-Identifier: Apache-2.0
// One training program as a list of requests whose sizes depend on the batch size: made from
// traces of it at different batch sizes, which must tell of the same events in the same order.
// Used by prediction.h and search.h. All sizes in bytes, not rounded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fit/workspaces/cudnn_answers.h"
#include "formats/model/trace_events.h"

namespace cufit::fit {

using formats::StorageCategory;
using Site = formats::TraceSite;  // texts of StepProgram::texts
using Note = formats::TraceNote;  // the same
using formats::TraceMark;
using formats::TracePhase;

// How a size follows the batch size, as far as the traces show it.
enum class SizeRule : uint8_t {
  constant,   // equal in all traces
  affine,     // constant + slope * batch, whole numbers, through all traces
  quadratic,  // quadratic * batch^2 + slope * batch, through all traces: a batch by batch matrix
  rounded,    // near a line, as sizes are that are rounded up to a granularity; exact only where
              // traced
  unclear,    // grows faster than the batch size and follows no rule; exact only where traced
  traced,     // one trace: known at its batch size alone
};
const char* to_string(SizeRule rule);

// constant + slope * batch + quadratic * batch^2, where the rule is one of the first three.
struct Size {
  int64_t constant = 0, slope = 0, quadratic = 0;
  uint64_t granularity = 1;  // the greatest number of which all traced sizes are multiples
  uint32_t traced = 0;       // of StepProgram::traced_sizes: one per trace
  SizeRule rule = SizeRule::constant;
  bool operator==(const Size&) const = default;
};

struct SizeAt {
  uint64_t point = 0;
  uint64_t upper = 0;  // greater than the point only where the rule is rounded or unclear
};

enum class StepEventKind : uint8_t { alloc, free, mark, call };

struct StepEvent {
  uint32_t index = 0;  // alloc, free: storage; call: of StepProgram::calls; mark: TraceMark
  uint32_t site = 0;   // alloc, call: of StepProgram::sites
  uint32_t size = 0;   // alloc: of StepProgram::sizes
  StepEventKind kind = StepEventKind::mark;
};

struct StepCall {
  uint32_t site = 0;
  uint32_t first = 0, count = 0;  // of StepProgram::call_numbers
};

struct Storage {
  uint32_t alloc = 0;  // of StepProgram::events
  uint32_t free = 0;   // the same; events.size() where it is never freed
  StorageCategory category = StorageCategory::unknown;
  bool crosses_backward = false;  // something of a backward pass happens while it lives
};

// Where two traces part for the first time.
struct Difference {
  // falls: they tell of the same, and a larger batch would take less.
  enum class What : uint8_t { event, site, call, length, falls };
  What what = What::event;
  size_t trace = 0;  // of the list given to align; it differs from the first
  size_t event = 0;  // of StepProgram::events
  uint64_t batch = 0, other_batch = 0;
  // Of the event in the first trace; of the last alloc or call before it where it has no site.
  // Empty where there is none.
  std::string op, module, source;
  std::string other_op, other_module, other_source;  // the same in the other trace
};

// What was left out of a program, as the whole traces show it (prediction.h, measure_left_out).
struct LeftOut {
  // Of StepProgram::whole: the one whose peak is in what was left out; SIZE_MAX: there is none.
  size_t deciding = SIZE_MAX;
  uint64_t allocated = 0;      // its peak: no other batch size is taken to need less
  // What a whole trace reserves more than the rest of it, by batch size, ascending.
  struct More {
    uint64_t batch = 0, bytes = 0;
  };
  std::vector<More> more_reserved;
};

struct StepProgram {
  std::vector<uint64_t> batches;  // traced, ascending
  std::vector<StepEvent> events;
  std::vector<Storage> storages;
  std::vector<std::string> texts;
  std::vector<Site> sites;
  std::vector<Size> sizes;  // each once
  std::vector<StepCall> calls;
  std::vector<uint32_t> call_numbers;     // of sizes
  std::vector<uint64_t> traced_sizes;     // batches.size() for each Size
  std::vector<Note> notes;                // of all traces, each once
  std::vector<formats::TraceFact> facts;  // of the first trace
  CudnnAnswers cudnn;                     // of all traces
  uint32_t steps = 0;                     // that ended
  uint32_t later_steps = 0;               // of them, that were not traced
  bool complete = false;                  // all traces have their end
  bool after_steps_left_out = false;      // what follows the steps was not the same in the traces
  // What comes and goes before the first step was not the same: behind the place where the traces
  // part, only what lives on is here.
  bool setup_left_out = false;
  formats::TraceEnd end = formats::TraceEnd::cut_off;  // the worst of the traces
  // Where something was left out: each trace with all of it, which answers for its own batch size.
  std::vector<StepProgram> whole;
  LeftOut left_out;
  // Not empty: the traces are of different programs or of one that does different things at
  // different batch sizes. Then `apart` has one program per trace, each for its own batch size, and
  // nothing here answers for others; the rows above are those of the largest batch.
  std::vector<Difference> differences;
  std::vector<StepProgram> apart;

  std::string_view text(uint32_t number) const { return texts[number]; }
  uint32_t traced_steps() const { return steps - later_steps; }
  std::string_view fact(std::string_view key) const;  // empty: not said
  bool is_traced(uint64_t batch) const;
  // Whether batch sizes that were not traced can be answered.
  bool extrapolates() const { return batches.size() > 1 && differences.empty(); }
  // The program that answers for this batch size; null: none does.
  const StepProgram* at(uint64_t batch) const;
};

// One row per Size of the program. Error{unsupported} where a size would be negative or beyond
// what any machine has.
Result<std::vector<SizeAt>> sizes_at(const StepProgram& program, uint64_t batch);
Result<SizeAt> size_at(const StepProgram& program, const Size& size, uint64_t batch);

// Any order; each trace has the fact `batch`, none twice the same. Error{usage} where not,
// Error{malformed} where a trace has no storage.
Result<StepProgram> align(std::span<const formats::TraceEvents> traces);

}  // namespace cufit::fit
