// SPDX-License-Identifier: Apache-2.0
// What the tracer of `cufit fit` writes (python/cufit_tracer): the storages that a training
// program makes and drops on a pretended GPU. May be gzip or zstd (compressed_input.h). Layout:
// the 8 bytes "CUFITEV1", then records of one byte kind and fields; numbers are unsigned LEB128, at
// most 64 bit and 10 bytes; a text is named by its number.
//
//   1 text      length, bytes of UTF-8; texts, sites and storages are numbered 0, 1, 2 ..
//   2 site      op text, module text, source text ("train.py:57" or ""), TracePhase + 8 x stream
//               (0: the default one; 1 to 15 the others, in the order in which they were made, then
//               again; 16 to 255: the private pools of CUDA graphs; a call "graph_pool_released"
//               leaves its number to another)
//   3 alloc     bytes of the storage, not rounded; site
//   4 free      distance: storages so far - 1 - its number
//   5 mark      byte: TraceMark
//   6 call      site, n, n numbers: an operator whose kernel may ask for memory of its own
//   7 category  distance, byte: StorageCategory; said while the storage lives
//   8 note      kind text, detail text, source text: what could not be followed or was assumed
//   9 fact      key text, value text
//   10 end      byte: TraceEnd; nothing after it
//   12 convolution  what cuDNN said of one: compute capability as 10 x major + minor; pass (0:
//   forward,
//               1: gradient of the data, 2: of the weights); n, the n numbers of its call with the
//               batch size 0; m, and m times seven: batch size, bytes of the workspace of the
//               engine that comes first, most bytes over all engines (0: not asked), TILE_SIZE + 1,
//               32 times the thread blocks of a cluster down the result and those across (each 0:
//               no such knob; below 32: all of them), 1 where the engine may divide its sums, its
//               number among cuDNN's engines of this pass
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "formats/archive/compressed_input.h"

namespace cufit::formats {

// `other` and `validation` come after the steps: outside of modules, and in what does not train.
enum class TracePhase : uint8_t { setup, forward, backward, optimizer, other, validation };
// after_steps: what follows is no step of training, until one begins.
enum class TraceMark : uint8_t { step_begins, step_ends, micro_batch, after_steps };
// `unknown` is never written.
enum class StorageCategory : uint8_t {
  unknown,
  parameter,
  buffer,
  gradient,
  optimizer_state,
  input,
  gathered,      // parameters that are dealt out, all of them for a moment
  communication  // buckets and buffers of collectives
};
enum class TraceEnd : uint8_t { steps_seen, script_ended, script_failed, cut_off = 255 };
inline constexpr uint8_t k_first_graph_pool = 16, k_graph_pools = 240;  // as the stream of a site

enum class TraceEventKind : uint8_t { alloc = 3, free = 4, mark = 5, call = 6 };

struct TraceSite {
  uint32_t op = 0, module = 0, source = 0;  // of TraceEvents::texts
  TracePhase phase = TracePhase::setup;
  uint8_t stream = 0;  // of CUDA, on which its storages are
};

struct TraceEvent {
  uint64_t bytes = 0;  // alloc
  uint32_t index = 0;  // alloc, free: storage; call: of TraceEvents::calls; mark: TraceMark
  uint32_t site = 0;   // alloc, call
  TraceEventKind kind = TraceEventKind::mark;
};

inline bool is_mark(const TraceEvent& event, TraceMark mark) {
  return event.kind == TraceEventKind::mark && event.index == static_cast<uint32_t>(mark);
}

struct TraceCall {
  uint32_t site = 0;
  uint32_t first = 0, count = 0;  // of TraceEvents::numbers
};

struct TraceWorkspace {
  uint64_t batch = 0, bytes = 0, most = 0;
  uint32_t tile = 0, cluster = 0, engine = 0;
  bool divides = false;
};

struct TraceConvolution {
  uint32_t capability = 0;
  uint8_t pass = 0;
  uint32_t first = 0, count = 0;                      // of TraceEvents::numbers
  uint32_t first_workspace = 0, workspace_count = 0;  // of TraceEvents::workspaces
};

struct TraceNote {
  uint32_t kind = 0, detail = 0, source = 0;  // of TraceEvents::texts
};

struct TraceFact {
  uint32_t key = 0, value = 0;  // of TraceEvents::texts
};

struct TraceEvents {
  std::string name;  // of the file
  std::vector<std::string> texts;
  std::vector<TraceSite> sites;
  std::vector<TraceEvent> events;  // in the order of the program; frees side by side by storage
  std::vector<TraceCall> calls;
  std::vector<uint64_t> numbers;
  std::vector<StorageCategory> categories;  // by storage; the last said
  std::vector<TraceConvolution> convolutions;
  std::vector<TraceWorkspace> workspaces;
  std::vector<TraceNote> notes;
  std::vector<TraceFact> facts;
  TraceEnd end = TraceEnd::cut_off;
  bool complete = false;  // the record `end` was there
  uint64_t size_bytes = 0;

  size_t storage_count() const { return categories.size(); }
  // The last said; empty where the file has no such fact.
  std::string_view fact(std::string_view key) const;
  std::span<const uint64_t> numbers_of(const TraceCall& call) const {
    return std::span(numbers).subspan(call.first, call.count);
  }
};

struct TraceLimits {
  ExpandLimits expand;
  uint64_t events = 1u << 26;      // 1.5 GiB of rows
  uint64_t rows = 1u << 22;        // texts, sites, facts and workspaces, each
  uint64_t notes = 1u << 12;       // the tracer writes up to 1000; each becomes a line
  uint64_t numbers = 1u << 26;     // of calls
  uint64_t call_numbers = 256;     // of one call
  uint64_t text_bytes = 1u << 16;  // of one text
  uint64_t all_text_bytes = 1u << 28;
  uint64_t workspace_bytes = 1ull << 48;
  uint64_t live_bytes = 1ull << 56;  // that live at one moment: no sum overflows
};

// A file that was cut off gives what stands before the cut, with `complete` false. Anything else
// that does not follow the layout is Error{malformed} with the byte of the expanded file.
Result<TraceEvents> read_trace_events(std::shared_ptr<const ByteSource> source,
                                      const TraceLimits& limits = {});

}  // namespace cufit::formats
