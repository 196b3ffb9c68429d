// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/plan_variants.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "fit/answer/cards.h"

namespace cufit::fit {
namespace {

using formats::StorageCategory;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using Switches = std::vector<std::string>;

// Below this share of all storages that live at once the optimizer is not worth a trace (LoRA).
constexpr uint64_t k_optimizer_share = 20;
constexpr size_t k_most_tp = 3;

Switches words_between(std::string_view text, char between) {
  Switches out;
  for (const std::string_view word : split(text, between))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

bool has_word(const Switches& list, const char* word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool optimizer_matters(const TraceEvents& events) {
  std::vector<uint64_t> bytes(events.storage_count());
  uint64_t live = 0, peak = 0, states = 0;
  for (const TraceEvent& event : events.events) {
    if (event.kind == TraceEventKind::free) live -= bytes[event.index];
    if (event.kind != TraceEventKind::alloc) continue;
    live += bytes[event.index] = event.bytes;
    peak = std::max(peak, live);
    if (events.categories[event.index] == StorageCategory::optimizer_state) states += event.bytes;
  }
  return states >= peak / k_optimizer_share;
}

const char* precision_switch(const TraceEvents& events,
                             const std::optional<ComputeCapability>& cc) {
  if (!events.fact("autocast").empty() || events.fact("precision") != "float32") return nullptr;
  return !cc || *cc >= k_first_with_bf16 ? "bf16" : "fp16";
}

// Ways to deal out what DistributedDataParallel runs.
std::vector<Switches> ways_to_deal(const TraceEvents& events, bool checkpoints) {
  const uint64_t world = parse_uint(events.fact("world_size")).value_or(1);
  if (events.fact("data_parallel") != "ddp" || world < 2) return {};
  std::vector<Switches> out = {{"zero1"}, {"fsdp:no-reshard"}, {"fsdp"}};
  if (checkpoints) out.push_back({"fsdp", "checkpointing"});
  out.push_back({"fsdp", "offload"});
  if (checkpoints) out.back().insert(out.back().begin() + 1, "checkpointing");
  const uint64_t node = parse_uint(events.fact("node_size")).value_or(world);
  if (node > 1 && node < world) out.push_back({format("hsdp:{}", node)});
  const Switches can = words_between(events.fact("tp_can"), ' ');
  for (size_t i = 0; i < std::min<size_t>(can.size(), k_most_tp); ++i)
    out.push_back({"tp:" + can[i]});
  return out;
}

}  // namespace

std::string variant_words(const Switches& switches, const TraceEvents& trace) {
  std::string out = format("{},{}", k_plan_variant, join(switches, ","));
  const bool half = has_word(switches, "bf16") || has_word(switches, "fp16");
  if (half || trace.fact("data_parallel").empty()) return out;
  if (trace.fact("autocast") == "bfloat16") out += ",cast_bf16";
  if (trace.fact("autocast") == "float16") out += ",cast_fp16";
  return out;
}

Switches switches_of(const TraceEvents& events) {
  return words_between(events.fact("variant"), ',');
}

std::vector<Switches> variants_worth(const TraceEvents& events,
                                     const std::optional<ComputeCapability>& traced_for) {
  if (events.fact("micro_batches").empty()) return {};  // it ended too early to tell
  const std::string_view checkpointing = events.fact("checkpointing");
  const char* precision = precision_switch(events, traced_for);
  const bool checkpoints = !checkpointing.empty() && checkpointing != "on";
  const Switches can = words_between(events.fact("optimizer_can"), ' ');
  const bool matters = optimizer_matters(events);
  const char* form = nullptr;  // of the optimizer, which costs nothing
  if (matters && events.fact("optimizer_form") == "foreach")
    form = has_word(can, "fused")         ? "fused"
           : has_word(can, "foreach_off") ? "foreach_off"
                                          : nullptr;
  std::vector<Switches> out;
  const auto add = [&](bool half, bool recompute, const char* optimizer) {
    Switches switches;
    if (half && precision != nullptr) switches.emplace_back(precision);
    if (recompute && checkpoints) switches.emplace_back("checkpointing");
    if (optimizer != nullptr) switches.emplace_back(optimizer);
    if (!switches.empty() && std::find(out.begin(), out.end(), switches) == out.end())
      out.push_back(std::move(switches));
  };
  for (const bool recompute : {false, true})
    for (const bool half : {false, true}) add(half, recompute, form);
  if (matters && has_word(can, "8bit"))
    for (const bool recompute : {false, true}) add(true, recompute, "8bit");
  for (Switches dealt : ways_to_deal(events, checkpoints)) {
    if (precision != nullptr) dealt.emplace_back(precision);
    if (form != nullptr && !has_word(dealt, "offload")) dealt.emplace_back(form);
    out.push_back(std::move(dealt));
  }
  return out;
}

}  // namespace cufit::fit
