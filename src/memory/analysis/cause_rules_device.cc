// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "knowledge/knowledge.h"
#include "memory/analysis/cause_rules.h"

namespace cufit::analysis {
namespace {

constexpr uint64_t k_cause_rules_device_gib = 1u << 30;
// The smallest cards that PyTorch runs on have 2 GB, those of compute capability 9.0 80 GB; both
// leave more than this to one process.
constexpr uint64_t k_least_card = 3 * k_cause_rules_device_gib / 2;
constexpr uint64_t k_least_hopper = 70 * k_cause_rules_device_gib;
constexpr ComputeCapability k_hopper{9, 0};

// cuBLAS's workspace on compute capability 9.0. It says little: so has 10.0 and later, and every
// card with CUBLAS_WORKSPACE_CONFIG=:4096:8.
bool has_hopper_workspace(const OomCase& facts) {
  const auto* row = knowledge::Knowledge::builtin().find_cublas_workspace(k_hopper);
  if (row == nullptr) return false;
  for (size_t i = 0; i < facts.categories.size(); ++i)
    if (facts.categories[i] == Category::workspace &&
        facts.lifetimes.rows[i].requested_bytes == static_cast<uint64_t>(row->bytes))
      return true;
  return false;
}

}  // namespace

std::optional<Cause> runaway_request(const OomCase& facts) {
  if (!facts.oom || !facts.device_free) return std::nullopt;
  const uint64_t card = facts.at.reserved_bytes + *facts.device_free;
  if (facts.oom->rounded < 64 * k_cause_rules_device_gib || facts.oom->rounded / 8 < card)
    return std::nullopt;
  Cause cause{"runaway_request", Confidence::likely, {}, {}};
  // No address space holds it.
  if (facts.oom->rounded >= uint64_t{1} << 47) cause.confidence = Confidence::certain;
  cause.evidence.push_back({"runaway", {bytes("tried", facts.oom->rounded), bytes("card", card)}});
  return cause;
}

namespace {

// What the card gave to this process, or would have given, at the end.
std::optional<uint64_t> share_of_full_card(const OomCase& facts) {
  if (!facts.oom || !facts.limits || !facts.device_free) return std::nullopt;
  if (*facts.device_free >= facts.oom->tried) return std::nullopt;
  return facts.at.reserved_bytes + *facts.device_free;
}

// The most that it did earlier in the same trace.
uint64_t share_before(const OomCase& facts) {
  uint64_t most = facts.verified.peak_reserved;
  const memory::Trace& trace = facts.snapshot.traces[facts.verified.device];
  for (size_t e = 0; e < facts.oom->event; ++e) {
    const memory::TraceEvent& event = facts.snapshot.events[trace.first + e];
    if (event.action != memory::Action::oom || event.address == memory::k_absent) continue;
    const Moment then = moment_at(facts.verified, facts.lifetimes, static_cast<uint32_t>(e));
    most = std::max(most, then.reserved_bytes + event.address);
    break;  // one is enough, and each takes a walk
  }
  return most;
}

Cause other_process_with(const OomCase& facts, Confidence confidence, EvidenceItem proof) {
  Cause cause{"other_process", confidence, {}, {}};
  cause.evidence.push_back({"card_full",
                            {bytes("tried", facts.oom->tried), bytes("free", *facts.device_free),
                             bytes("reserved", facts.at.reserved_bytes)}});
  cause.evidence.push_back(std::move(proof));
  return cause;
}

std::optional<Cause> proven_other_process(const OomCase& facts) {
  const std::optional<uint64_t> mine = share_of_full_card(facts);
  if (!mine) return std::nullopt;
  const uint64_t before = share_before(facts);
  if (*mine < before - before / 10)
    return other_process_with(facts, Confidence::likely,
                              {"gave_more", {bytes("mine", *mine), bytes("before", before)}});
  if (*mine < k_least_card)
    return other_process_with(
        facts, Confidence::likely,
        {"small_for_any_card", {bytes("mine", *mine), bytes("least", k_least_card)}});
  return std::nullopt;
}

}  // namespace

std::optional<Cause> other_process(const OomCase& facts) {
  if (facts.history.trend == Trend::growing) return std::nullopt;  // that explains it
  return proven_other_process(facts);
}

std::optional<Cause> other_process_maybe(const OomCase& facts) {
  if (std::optional<Cause> proven = proven_other_process(facts)) {
    proven->confidence = Confidence::possible;
    return proven;
  }
  const std::optional<uint64_t> mine = share_of_full_card(facts);
  if (!mine || *mine >= k_least_hopper || !has_hopper_workspace(facts)) return std::nullopt;
  return other_process_with(
      facts, Confidence::possible,
      {"small_for_hopper", {bytes("mine", *mine), bytes("least", k_least_hopper)}});
}

// The card had room: something else said no.
std::optional<Cause> gpu_quota_limit(const OomCase& facts) {
  if (!facts.oom || !facts.device_free || *facts.device_free < facts.oom->tried)
    return std::nullopt;
  Cause cause{"gpu_quota_limit", Confidence::certain, {}, {}};
  cause.evidence.push_back(
      {"card_had_room", {bytes("tried", facts.oom->tried), bytes("free", *facts.device_free)}});
  if (facts.limits)
    cause.evidence.push_back(
        {"limit_between",
         {bytes("least", facts.limits->at_least), bytes("most", facts.limits->at_most)}});
  return cause;
}

namespace {

// Of the request that failed: 0 is the default pool.
uint16_t asking_pool(const OomCase& facts) {
  for (const memory::Op& op : facts.verified.program->ops)
    if (op.kind == memory::OpKind::failed && op.event == facts.oom->event) return op.pool;
  return 0;
}

// Of one private pool up to the out-of-memory: its blocks by address do not matter here.
struct PoolUse {
  std::vector<std::pair<uint32_t, int64_t>> changes;  // by event
  uint64_t live = 0, peak = 0;
};

std::map<uint16_t, PoolUse> private_pools(const OomCase& facts) {
  std::map<uint16_t, PoolUse> pools;
  for (const Lifetime& row : facts.lifetimes.rows) {
    if (row.pool == 0 || !is_born(row, oom_event(facts))) continue;
    PoolUse& pool = pools[row.pool];
    const auto bytes = static_cast<int64_t>(row.block_bytes);
    pool.changes.emplace_back(row.alloc_event == k_before ? 0 : row.alloc_event, bytes);
    if (is_allocated(row, oom_event(facts))) {
      pool.live += row.block_bytes;
    } else {
      pool.changes.emplace_back(row.free_requested, -bytes);
    }
  }
  for (auto& [number, pool] : pools) {
    std::sort(pool.changes.begin(), pool.changes.end());
    int64_t now = 0;
    for (const auto& [event, by] : pool.changes)
      pool.peak = std::max(pool.peak, static_cast<uint64_t>(std::max<int64_t>(0, now += by)));
  }
  return pools;
}

// A replayed graph asks for nothing, so that what it needs while it runs is seen at its capture
// alone. All that is in use, and the pass of one graph as it was captured: that much a run without
// graphs needs at the most.
uint64_t most_without_graphs(const OomCase& facts, const std::map<uint16_t, PoolUse>& pools) {
  uint64_t pass = 0;
  for (const auto& [number, pool] : pools)
    pass = std::max(pass, pool.peak - std::min(pool.peak, pool.live));
  return needed(facts) + pass;
}

}  // namespace

// What is in use inside a pool, activations above all, a run without graphs needs as well; only
// what lies idle there is lost, and of the pool that is asked itself not even that: the default
// pool would have the same holes. That it is lost the replay has to show: it is no cause where the
// run dies as well with all of it asked of the default pool.
std::optional<Cause> cudagraph_pool(const OomCase& facts) {
  const uint64_t pools = facts.at.private_reserved_bytes;
  if (!facts.oom || pools < facts.oom->tried || pools * 4 < facts.at.reserved_bytes)
    return std::nullopt;
  const uint64_t idle = pools - std::min(pools, facts.at.private_allocated_bytes);
  if (idle < facts.oom->tried || idle * 4 < pools) return std::nullopt;
  if (!facts.limits || !facts.without_pools || !facts.without_pools->at_most) return std::nullopt;
  const std::map<uint16_t, PoolUse> used = private_pools(facts);
  if (used.size() == 1 && asking_pool(facts) != 0) return std::nullopt;
  Cause cause{"cudagraph_pool", Confidence::likely, {}, {}};
  const bool rescued = facts.without_pools->at_least;
  if (rescued && most_without_graphs(facts, used) <= facts.limits->at_least)
    cause.confidence = Confidence::certain;
  cause.evidence.push_back({"pools",
                            {bytes("pools", pools), bytes("reserved", facts.at.reserved_bytes),
                             bytes("live", facts.at.private_allocated_bytes)}});
  cause.evidence.push_back(
      {rescued && facts.limits->given ? "without_pools_given"
       : rescued                      ? "without_pools"
                                      : "without_pools_maybe",
       {bytes("least", facts.limits->at_least), bytes("most", facts.limits->at_most)}});
  return cause;
}

namespace {

// In a run that lived: memory that nothing could use is the larger part of what it reserved.
std::optional<Cause> much_waited(const OomCase& facts) {
  constexpr uint64_t k_much = 256u << 20;
  const uint64_t reserved = facts.verified.peak_reserved;
  if (facts.highest_pending_bytes < k_much || facts.highest_pending_bytes < reserved / 2)
    return std::nullopt;
  Cause cause{"cross_stream_pending", Confidence::likely, {}, "lived"};
  cause.evidence.push_back(
      {"waited", {bytes("pending", facts.highest_pending_bytes), bytes("reserved", reserved)}});
  return cause;
}

}  // namespace

// PyTorch waits for events before it gives up, so what still waits then cannot be waited for: a
// capture is under way, or the stream is.
std::optional<Cause> cross_stream_pending(const OomCase& facts) {
  if (!facts.oom) return much_waited(facts);
  if (facts.at.pending_bytes == 0 || facts.at.pending_bytes < facts.oom->rounded)
    return std::nullopt;
  Cause cause{"cross_stream_pending", Confidence::likely, {}, {}};
  cause.evidence.push_back(
      {"pending", {bytes("pending", facts.at.pending_bytes), bytes("tried", facts.oom->rounded)}});
  return cause;
}

namespace {

// A trace that began late and shows too few whole steps cannot tell whether something grows.
bool may_grow(const OomCase& facts) {
  constexpr size_t k_steps_that_tell = 4;
  return began_late(facts) && facts.history.steps.size() < k_steps_that_tell;
}

// Earlier steps held as much as this one needs: it is not the need that is too much.
bool need_is_usual(const OomCase& facts) {
  const Trend trend = facts.history.trend;
  if (trend == Trend::growing || trend == Trend::jumping || may_grow(facts)) return false;
  const uint64_t before = facts.history.highest_before_bytes;
  return before > 0 && needed(facts) <= before + before / 10;
}

// No earlier step tells; but the free bytes inside the segments would do, and they are many.
bool cache_would_do(const OomCase& facts) {
  return facts.steps.finished == 0 && !may_grow(facts) &&
         facts.at.cached_bytes() >= facts.oom->rounded &&
         facts.at.cached_bytes() >= facts.at.reserved_bytes / 20;
}

EvidenceItem free_space(const OomCase& facts) {
  return {"free_space",
          {bytes("tried", facts.oom->rounded), bytes("cached", facts.at.cached_bytes()),
           bytes("largest", facts.oom->largest_free_in_pool),
           bytes("split", facts.at.inactive_split_bytes)}};
}

Cause fragmentation_with(const OomCase& facts, Confidence confidence) {
  Cause cause{"fragmentation", confidence, {free_space(facts)}, {}};
  // The free bytes alone are less than the request: with what the limit leaves they would do.
  if (facts.at.cached_bytes() < facts.oom->rounded) cause.variant = "packed";
  if (facts.rescue)
    cause.evidence.push_back(
        {facts.rescue->at_least && facts.limits->given ? "rescued_given"
         : facts.rescue->at_least                      ? "rescued"
         : facts.rescue->at_most                       ? "rescued_maybe"
                                                       : "not_rescued",
         {text("settings", facts.rescue->settings), bytes("least", facts.limits->at_least),
          bytes("most", facts.limits->at_most)}});
  if (facts.history.highest_before_bytes >= needed(facts))
    cause.evidence.push_back(
        {"had_more_before",
         {bytes("needed", needed(facts)), bytes("before", facts.history.highest_before_bytes)}});
  return cause;
}

}  // namespace

std::optional<Cause> fragmentation(const OomCase& facts) {
  if (!facts.oom || !facts.limits) return std::nullopt;
  if (facts.oom->largest_free_in_pool >= facts.oom->rounded) return std::nullopt;
  const bool usual = need_is_usual(facts);
  if (!usual && !cache_would_do(facts)) return std::nullopt;
  const bool rescued = facts.rescue && facts.rescue->at_least;
  const bool maybe = facts.rescue && facts.rescue->at_most;
  if (rescued && usual) return fragmentation_with(facts, Confidence::certain);
  // Of a full card a few free bytes are no layout that could be better.
  const bool much = facts.at.cached_bytes() >= facts.oom->rounded &&
                    facts.at.cached_bytes() >= facts.at.reserved_bytes / 50;
  if (maybe || much) return fragmentation_with(facts, Confidence::likely);
  return std::nullopt;
}

// Other settings get past this point under what the program certainly could get. What would have
// come after it nobody knows.
std::optional<Cause> rescued_request(const OomCase& facts) {
  if (!facts.oom || !facts.limits || !facts.rescue || !facts.rescue->at_least) return std::nullopt;
  if (facts.at.cached_bytes() < facts.at.reserved_bytes / 50) return std::nullopt;
  return fragmentation_with(facts, may_grow(facts) ? Confidence::possible : Confidence::likely);
}

// The same, where the limit is only known as a range.
std::optional<Cause> tight_limit(const OomCase& facts) {
  if (!facts.oom || !facts.limits || !facts.rescue || !facts.rescue->at_most) return std::nullopt;
  if (facts.at.cached_bytes() < facts.at.reserved_bytes / 50) return std::nullopt;
  return fragmentation_with(facts, Confidence::possible);
}

}  // namespace cufit::analysis
