// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/replay.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/parallel.h"
#include "memory/replay/replay_limitations.h"
#include "memory/allocator/rounding.h"

namespace cufit::memory {
namespace {

// Of Program::streams, the one on which the default pool is asked most.
uint16_t main_stream(const Program& program) {
  std::vector<uint32_t> requests(program.streams.size());
  for (const Op& op : program.ops)
    if (op.kind == OpKind::malloc && op.pool == 0) ++requests[op.stream];
  const auto most = std::max_element(requests.begin(), requests.end());
  if (most == requests.end()) return 0;
  return static_cast<uint16_t>(most - requests.begin());
}

class Run {
 public:
  Run(const Program& program, const ReplayOptions& options, DeviceMemory& memory,
      std::vector<SegmentEvent>* log, bool is_what_if)
      : program_(program), allocator_(options.allocator, memory, log), is_what_if_(is_what_if) {
    for (const uint64_t stream : program.streams) streams_.push_back(allocator_.stream(stream));
    for (uint32_t i = 0; i < program.pools; ++i) allocator_.retain_pool(allocator_.create_pool({}));
    blocks_.resize(program.slots);
    adopt_initial_state(is_what_if && options.without_pools);
  }

  // False: out of memory. `number`: of the allocation, if the op makes one.
  bool step(const Op& op, uint32_t number) {
    allocator_.set_event(op.event);
    if (op.kind != OpKind::failed) attempt_served_ = false;
    switch (op.kind) {
      case OpKind::malloc:
        return step_malloc(op, program_.sizes[number]);
      case OpKind::free:
        if (blocks_[op.slot]) allocator_.free(blocks_[op.slot]);
        return true;
      case OpKind::free_requested:
        if (blocks_[op.slot]) allocator_.free_requested(blocks_[op.slot]);
        return true;
      case OpKind::free_completed:
        if (blocks_[op.slot]) allocator_.free_completed(blocks_[op.slot]);
        return true;
      case OpKind::empty_cache:
        allocator_.empty_cache();
        return true;
      case OpKind::failed:
        return step_failed(op);
    }
    return true;
  }

  CachingAllocator& allocator() { return allocator_; }
  BlockHandle block(const Op& op) const { return blocks_[op.slot]; }
  StreamIndex stream(uint16_t stream) const { return streams_[stream]; }
  ReplayResult finish() {
    result_.stats = allocator_.stats();
    return std::move(result_);
  }

 private:
  void adopt_initial_state(bool without_pools) {
    uint32_t slot = 0;
    for (SegmentView segment : program_.initial) {
      if (without_pools && segment.pool != 0) {
        segment.pool = 0;
        if (!program_.streams.empty()) segment.stream = program_.streams[main_stream(program_)];
      }
      allocator_.adopt(segment);
      for (const BlockView& block : segment.blocks)
        if (block.state != BlockUse::inactive) blocks_[slot++] = block.handle;
    }
  }

  bool step_malloc(const Op& op, uint64_t size) {
    const bool is_workspace = is_what_if_ && op.freed_at_once && program_.has_workspaces;
    BlockHandle& block = blocks_[op.slot];
    block = {};
    if (is_workspace && !refused_.empty() && refused_.count(size) != 0) return true;
    block = allocator_.malloc_in_pool(size, streams_[op.stream], op.pool);
    // A recording tells itself where it ran out of memory: what its own requests do not get from
    // the model is a difference.
    if (!is_what_if_) return static_cast<bool>(block);
    if (!is_workspace || block) return noted(block);
    refused_.insert(size);
    if (!result_.workspace_refused) result_.workspace_refused = allocator_.last_oom();
    return true;
  }

  bool noted(BlockHandle handle) {
    if (handle) return true;
    if (!result_.oom) result_.oom = allocator_.last_oom();
    return false;
  }

  // The request that the recorded run could not serve. If it is served now, nothing in the
  // recording says when it would have been freed.
  bool step_failed(const Op& op) {
    if (attempt_served_) return true;  // no further attempt would have been made
    const BlockHandle handle =
        allocator_.malloc_in_pool(program_.failed_sizes[op.slot], streams_[op.stream], op.pool);
    if (op.caught && is_what_if_ && !handle) return true;
    attempt_served_ = op.caught && is_what_if_;
    if (!noted(handle)) return false;
    (op.caught ? result_.served_caught_failure : result_.survived_recorded_oom) = true;
    allocator_.free(handle);
    return true;
  }

  const Program& program_;
  CachingAllocator allocator_;
  std::vector<StreamIndex> streams_;
  std::vector<BlockHandle> blocks_;  // by slot; false: out of memory
  std::set<uint64_t> refused_;       // sizes of workspaces
  const bool is_what_if_;
  bool attempt_served_ = false;  // of several that a library made in a row
  ReplayResult result_;
};

// 0 for all that come later.
std::vector<uint64_t> initial_block_bytes(const Program& program) {
  std::vector<uint64_t> bytes;
  bytes.reserve(program.addresses.size());
  for (const SegmentView& segment : program.initial)
    for (const BlockView& block : segment.blocks)
      if (block.state != BlockUse::inactive) bytes.push_back(block.size);
  bytes.resize(program.addresses.size());
  return bytes;
}

}  // namespace

namespace {

// The ops about allocations that the program is without.
class LeftOut {
 public:
  LeftOut(const Program& program, const std::vector<bool>* allocations)
      : left_out_(allocations), numbers_(program) {}
  // Asked of all ops in their order.
  bool has(const Op& op) {
    return left_out_ != nullptr && op.kind != OpKind::empty_cache && op.kind != OpKind::failed &&
           (*left_out_)[numbers_.of(op)];
  }

 private:
  const std::vector<bool>* left_out_;
  AllocationNumbers numbers_;
};

ReplayResult replay_once(const Program& program, const ReplayOptions& options,
                         const Variation& variation, std::vector<SegmentEvent>* log) {
  SyntheticMemory memory(options.capacity, variation.order);
  memory.space() = AddressSpace(program.placement.top);
  for (const SegmentView& segment : program.initial)
    memory.space().occupy(segment.address, segment.size);
  const bool empties = program.doubts_are_limits == variation.other_reading;
  Run run(program, options, memory, log, true);
  auto next = program.placement.steps.begin();
  const auto last = program.placement.steps.end();
  LeftOut left_out(program, options.left_out);
  const uint16_t shared = options.without_pools ? main_stream(program) : 0;
  auto number = static_cast<uint32_t>(program.initial_blocks.size());
  for (Op op : program.ops) {
    const uint32_t made = op.kind == OpKind::malloc ? number++ : number;
    if (left_out.has(op) || (op.doubtful && !empties)) continue;
    for (; next != last && next->event <= op.event; ++next) apply(*next, memory.space());
    if (variation.events_pass_at_once) {
      if (op.kind == OpKind::free_completed) continue;
      if (op.kind == OpKind::free_requested) op.kind = OpKind::free;
    }
    if (options.without_pools && op.pool != 0) op.pool = 0, op.stream = shared;
    if (!run.step(op, made) && options.stop_at_oom) break;
  }
  return run.finish();
}

using Order = SyntheticMemory::Order;

// The runs with other places of segments that replay_limitations() may ask for. Long ones are made
// both at once where there are processors: mostly neither differs, so that the second is asked for
// too.
class OtherOrders {
 public:
  OtherOrders(const Program& program, const ReplayOptions& options)
      : program_(program), options_(options) {}

  const ReplayResult& get(Order order) {
    const size_t which = order == k_orders[0] ? 0 : 1;
    if (runs_[which]) return *runs_[which];
    constexpr size_t k_long = 2'000;  // ops; a thread costs 50 microseconds
    if (program_.ops.size() >= k_long && options_.processors > 1) {
      in_parallel(k_orders.size(), k_orders.size(), [&](size_t i) { make(i); });
    } else {
      make(which);
    }
    return *runs_[which];
  }

 private:
  static constexpr std::array<Order, 2> k_orders = {Order::descending, Order::ascending};
  void make(size_t which) {
    runs_[which] = replay_once(program_, options_, {k_orders[which]}, nullptr);
  }

  const Program& program_;
  const ReplayOptions& options_;
  std::array<std::optional<ReplayResult>, k_orders.size()> runs_;
};

}  // namespace

ReplayResult replay(const Program& program, const ReplayOptions& options,
                    std::vector<SegmentEvent>* log) {
  std::vector<SegmentEvent> own;
  if (log == nullptr) log = &own;
  ReplayResult result = replay_once(program, options, {options.order}, log);
  if (!options.with_reasons) return result;
  OtherOrders others(program, options);
  result.replay_limitations = replay_limitations(
      program, options, result, *log, [&](const Variation& variation) -> ReplayResult {
        if (variation.events_pass_at_once || variation.other_reading)
          return replay_once(program, options, variation, nullptr);
        return others.get(variation.order);
      });
  return result;
}

Verification verify(const Program& program, const ReplayOptions& recorded,
                    std::vector<uint64_t>* block_bytes) {
  Verification check;
  RecordedMemory memory(program.segment_calls);
  ReplayOptions options = recorded;
  // Of a card that nobody named; what failed under it the recording shows.
  options.allocator.settings.per_process_memory_fraction.reset();
  Run run(program, options, memory, nullptr, false);
  if (block_bytes != nullptr) *block_bytes = initial_block_bytes(program);
  auto window = program.windows.begin();
  bool empties = false;
  auto number = static_cast<uint32_t>(program.initial_blocks.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.doubtful) continue;  // it shows at the request after it
    const uint32_t made = op.kind == OpKind::malloc ? number++ : number;
    const size_t differences = memory.differing();
    size_t end = memory.consumed();
    if (window != program.windows.end() && window->op == i) end = (window++)->end;
    memory.open_window(end, op.kind == OpKind::failed);
    // Segments were given back that this request would not have released: empty_cache came first.
    const std::optional<uint64_t> released = memory.released_next();
    if (op.kind == OpKind::malloc && released &&
        !run.allocator().would_release_first(*released, program.sizes[made], run.stream(op.stream),
                                             op.pool)) {
      run.allocator().empty_cache();
      empties = true;
    }
    const size_t failures = memory.failures();
    const uint64_t reserved = run.allocator().stats().reserved_bytes.current;
    const bool served = run.step(op, made);
    memory.close_window();
    if (op.kind == OpKind::malloc && memory.failures() > failures) {
      const Settings& settings = options.allocator.settings;
      const uint64_t asked =
          get_allocation_size(round_size(program.sizes[made], settings.roundup_power2_divisions),
                              settings.large_segment_size);
      check.refused = std::min(check.refused.value_or(UINT64_MAX), reserved + asked);
    }
    bool differs = memory.differing() != differences;
    if (op.kind == OpKind::malloc) {
      ++check.allocations;
      const bool same =
          served && run.allocator().block(run.block(op)).ptr == program.addresses[made];
      check.addresses_matched += same ? 1 : 0;
      if (block_bytes != nullptr && same)
        (*block_bytes)[made] = run.allocator().block(run.block(op)).size;
      differs = differs || !same;
    }
    if (op.kind == OpKind::failed) differs = differs || served;
    if (differs && !check.first_difference) check.first_difference = op.event;
  }
  check.segment_events = program.segment_calls.size();
  check.segment_events_matched = memory.matched();
  check.is_plain = !empties && memory.failures() == 0;
  check.result = run.finish();
  return check;
}

}  // namespace cufit::memory
