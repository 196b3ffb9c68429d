// SPDX-License-Identifier: Apache-2.0
// PyTorch's memory snapshot (`torch.cuda.memory._dump_snapshot`, 2.0 to 2.14) as typed rows. Used
// by replay and explain. Written by torch/csrc/cuda/Module.cpp (Python's pickler) or
// torch/csrc/cuda/memory_snapshot.cpp (torch's own, protocol 2):
//
//   {"segments": [...], "device_traces": [[entry, ...] per device],
//    "allocator_settings": {...} (2.3), "external_annotations": [...] (2.5),
//    "host_segments": [...], "host_traces": [...] (2.14, pinned memory)}
//   and of `cufit mem record` "cufit_limits": {"0": bytes that the process was allowed, ...}
//   segment: device, address, total_size, allocated_size, active_size, requested_size (2.1),
//   stream,
//            segment_type, segment_pool_id, is_expandable, frames, blocks
//   block:   address (2.1), size, requested_size, state, frames; in 2.0 `history` instead:
//            [{addr, real_size, frames}]
//   entry:   action, addr (`device_free` when action is oom), size, stream, time_us (2.2), frames,
//            compile_context, user_metadata, pool_id (2.14)
// Older files are the list of segments alone.
//
// A row of a trace takes 32 bytes, where the file takes 73 to 107; texts and stacks are kept once.
// Absent is not zero: k_absent says that the file has no such field.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "formats/archive/compressed_input.h"
#include "formats/pickle/text_pool.h"
#include "memory/snapshot/stacks.h"

namespace cufit::memory {

constexpr uint64_t k_absent = UINT64_MAX;
constexpr uint32_t k_no_text = UINT32_MAX;

enum class Action : uint8_t {
  alloc,           // size as requested
  free_requested,  // the same
  free_completed,
  segment_alloc,  // cudaMalloc
  segment_free,
  segment_map,
  segment_unmap,
  snapshot,  // size: total active bytes
  oom,       // size: the rounded request
  annotate,
  other,  // a later version's; its name is in the context
};
const char* to_string(Action action);

struct PoolId {
  uint64_t first = 0, second = 0;  // (k,0) a CUDA graph, (0,k) a MemPool, (0,0) the default pools
  bool operator==(const PoolId&) const = default;
};

// What many entries share. `stream` is the handle's value.
struct EventContext {
  uint64_t stream = 0;
  std::optional<PoolId> pool;
  uint32_t compile_context = k_no_text;
  uint32_t user_metadata = k_no_text;
  uint32_t category = k_no_text;
  uint32_t action_name = k_no_text;  // of Action::other
  bool operator==(const EventContext&) const = default;
};

struct TraceEvent {
  uint64_t address = k_absent;  // oom: device_free, what cudaMemGetInfo called free
  uint64_t size = k_absent;
  uint64_t time_us = k_absent;
  uint32_t stack = k_no_stack;
  uint32_t context : 24 = 0;  // of Snapshot::contexts
  Action action : 8 = Action::other;
};
static_assert(sizeof(TraceEvent) == 32);
using TraceEvents = Chunked<TraceEvent, 16>;  // 2 MiB each: huge pages

enum class BlockState : uint8_t { active_allocated, active_pending_free, inactive };
const char* to_string(BlockState state);

struct Block {
  uint64_t address = k_absent;  // computed where the file has none
  uint64_t size = k_absent;
  uint64_t requested_size = k_absent;
  uint32_t stack = k_no_stack;
  BlockState state = BlockState::inactive;
};

struct Segment {
  uint64_t address = k_absent;
  uint64_t total_size = k_absent;
  uint64_t allocated_size = k_absent;
  uint64_t active_size = k_absent;
  uint64_t requested_size = k_absent;
  uint64_t stream = 0;
  std::optional<PoolId> pool;
  uint32_t device = 0;
  uint32_t stack = k_no_stack;
  bool is_small = false;  // segment_type
  bool is_expandable = false;
  std::vector<Block> blocks;  // by address
};

// Entries of one device, oldest first, side by side in Snapshot::events.
struct Trace {
  size_t first = 0, count = 0;
};

struct Annotation {
  uint32_t name = k_no_text;
  bool start = false;
  uint32_t device = 0;
  uint64_t time_us = k_absent;
};

// `allocator_settings` (2.3 on); what a version does not write is absent.
struct AllocatorSettings {
  std::optional<std::string> conf;         // PYTORCH_CUDA_ALLOC_CONF as text; may be empty
  std::optional<uint64_t> max_split_size;  // k_absent: no limit, written as -1
  std::optional<double> garbage_collection_threshold;
  std::optional<bool> expandable_segments;
  std::optional<bool> release_lock_on_cudamalloc;
  std::optional<bool> graph_capture_record_stream_reuse;
  std::vector<std::pair<std::string, uint64_t>> roundup_power2_divisions;  // "1".."32768" in MB
  std::vector<std::pair<std::string, std::string>> rest;                   // other keys, as text
};

struct Snapshot {
  std::vector<Segment> segments;  // by address, all devices
  std::vector<Trace> traces;      // per device
  std::vector<Segment> host_segments;
  std::vector<Trace> host_traces;
  TraceEvents events;
  std::vector<EventContext> contexts;
  Stacks stacks;
  std::vector<uint32_t> python_stacks;  // by stack, up to the last that has frames of C++
  formats::TextPool texts;
  std::optional<AllocatorSettings> settings;
  std::vector<Annotation> annotations;
  // What the process was allowed, bytes by device, where a memory fraction was set: `cufit_limits`
  // of `cufit mem record`.
  std::map<uint32_t, uint64_t> process_limits;
  std::vector<uint32_t> unknown_keys;  // texts: what this version of cufit does not read
  unsigned pickle_protocol = 0;
  formats::Compression compression = formats::Compression::none;
  uint64_t size_bytes = 0;     // of the pickle
  bool only_segments = false;  // the oldest form, a bare list

  const EventContext& context(const TraceEvent& event) const { return contexts[event.context]; }
  std::string_view text(uint32_t number) const {
    return number == k_no_text ? std::string_view() : texts[number];
  }
  // The same stack without its frames of C++, which torch records by default (stacks="all") and
  // which name no place in the program. Not for k_no_stack.
  uint32_t python_stack(uint32_t stack) const {
    return stack < python_stacks.size() ? python_stacks[stack] : stack;
  }
  std::span<const uint32_t> python_frames(uint32_t stack) const {
    return stacks[python_stack(stack)];
  }
};

struct SnapshotLimits {
  formats::ExpandLimits expand;
  uint64_t events = 1u << 28;  // 8 GiB of rows
  uint64_t rows = 1u << 26;    // blocks, annotations and values of settings, each
};

// Error{malformed} for what is damaged or no snapshot (says what was expected and found),
// Error{unsupported} for a pickle that would run code or whose version is unknown.
Result<Snapshot> read_snapshot(std::shared_ptr<const ByteSource> source,
                               const SnapshotLimits& limits = {});

}  // namespace cufit::memory
