// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_plans.h"

#include <algorithm>

#include "base/format.h"
#include "commands/fit/fit_gpus.h"
#include "fit/trace_parts.h"

namespace cufit::commands {
namespace {

using formats::StorageCategory;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using Switches = std::vector<std::string>;

constexpr ComputeCapability k_bf16{8, 0};
// Below this share of all storages that live at once the optimizer is not worth a trace (LoRA).
constexpr uint64_t k_optimizer_share = 20;

Switches words_of(std::string_view text, char between) {
  Switches out;
  for (const std::string_view word : split(text, between))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

bool has(const Switches& list, const char* word) {
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

const char* precision_switch(const TraceEvents& events, const std::string& gpu) {
  if (!events.fact("autocast").empty() || events.fact("precision") != "float32") return nullptr;
  const Switches parts = words_of(gpu, ',');
  const std::optional<ComputeCapability> cc =
      parts.size() < 2 ? std::nullopt : parse_compute_capability(parts[parts.size() - 2]);
  return !cc || *cc >= k_bf16 ? "bf16" : "fp16";
}

// As one program, without the batch of one where it goes its own way.
Result<fit::StepProgram> aligned(std::vector<TraceEvents> traces) {
  CUFIT_TRY(all, fit::align(traces));
  if (all.differences.empty() || traces.size() < 3) return all;
  traces.erase(std::remove_if(traces.begin(), traces.end(),
                              [](const TraceEvents& trace) { return trace.fact("batch") == "1"; }),
               traces.end());
  return fit::align(traces);
}

// Where nothing is known of other batch sizes, nor is it of the variants.
void keep_batch(std::vector<TraceEvents>& traces, uint64_t batch) {
  const auto same = std::find_if(traces.begin(), traces.end(), [&](const TraceEvents& trace) {
    return trace.fact("batch") == std::to_string(batch);
  });
  if (same != traces.end()) std::iter_swap(traces.begin(), same);
  traces.resize(1);
}

Result<fit::PlanProgram> program_of(const Switches& switches,
                                    const std::vector<TraceEvents>& traces) {
  fit::PlanProgram out;
  out.switches = switches;
  std::vector<TraceEvents> plain;
  for (const TraceEvents& trace : traces) plain.push_back(fit::without_micro_batches(trace));
  CUFIT_TRY(steps, aligned(std::move(plain)));
  out.steps = std::move(steps);
  if (std::all_of(traces.begin(), traces.end(), fit::has_micro_batches)) {
    CUFIT_TRY(accumulating, aligned(traces));
    out.accumulating = std::move(accumulating);
  }
  return out;
}

}  // namespace

Switches switches_of(const TraceEvents& events) { return words_of(events.fact("variant"), ','); }

std::vector<Switches> variants_worth(const std::vector<TraceEvents>& base, const std::string& gpu) {
  const TraceEvents& events = base.front();
  if (events.fact("micro_batches").empty()) return {};  // it ended too early to tell
  const std::string_view checkpointing = events.fact("checkpointing");
  const char* precision = precision_switch(events, gpu);
  const bool checkpoints = !checkpointing.empty() && checkpointing != "on";
  const Switches can = words_of(events.fact("optimizer_can"), ' ');
  const bool matters = optimizer_matters(events);
  const char* form = nullptr;  // of the optimizer, which costs nothing
  if (matters && events.fact("optimizer_form") == "foreach")
    form = has(can, "fused") ? "fused" : has(can, "foreach_off") ? "foreach_off" : nullptr;
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
  if (matters && has(can, "8bit"))
    for (const bool recompute : {false, true}) add(true, recompute, "8bit");
  return out;
}

report::FitPlans fit_plans(FitTraces& traces, const PlansAsked& asked, const report::FitGpu& card,
                           const std::vector<report::FitGpu>& gpus) {
  report::FitPlans out;
  if (asked.batch == 0) {
    traces.warnings.push_back({"plan_no_batch", {}, ""});
    return out;
  }
  if (traces.whole.empty() || traces.whole.front().fact("micro_batches").empty()) {
    traces.warnings.push_back({"plan_untold", {}, ""});
    return out;
  }
  traces.variants.insert(traces.variants.begin(), VariantTraces{{}, std::move(traces.whole)});
  const std::optional<ComputeCapability> cc = parse_compute_capability(card.cc);
  for (VariantTraces& variant : traces.variants) {
    // Traced for another card: this one has no units for it, and would be slower.
    if (cc && *cc < k_bf16 && has(variant.switches, "bf16")) continue;
    if (!asked.extrapolates) keep_batch(variant.traces, asked.batch);
    Result<fit::PlanProgram> program = program_of(variant.switches, variant.traces);
    if (program) {
      out.programs.push_back(std::move(*program));
      continue;
    }
    traces.warnings.push_back(
        {"plan_failed",
         {{"switches", join(variant.switches, " + ")}, {"detail", program.error().text()}},
         ""});
    if (variant.switches.empty()) return out;
  }
  if (!out.programs.front().accumulating && fit::micro_batches(out.programs.front().steps) == 1)
    traces.warnings.push_back({"plan_no_accumulation", {}, ""});
  std::vector<fit::PlanCard> cards;
  for (const report::FitGpu& gpu : gpus) {
    if (!gpu.asked || gpu.usable == 0) continue;
    fit::PlanCard on{gpu.name, on_card(asked.setup, gpu)};
    on.setup.capacity = gpu.usable;
    cards.push_back(std::move(on));
    out.cards.push_back(gpu.name);
    out.usable.push_back(gpu.usable);
  }
  fit::PlanQuestion question;
  question.batch = asked.batch;
  question.accumulation = fit::micro_batches(out.programs.front().steps);
  question.setup = on_card(asked.setup, card);
  question.speed = fit::card_speed(card.name, card.cc, knowledge::Knowledge::builtin());
  out.speed_card = question.speed.card;
  out.speed_known = out.speed_card == card.name;
  out.plans = fit::plans_of(out.programs, question, cards);
  if (out.plans.plans.empty()) traces.warnings.push_back({"plan_untold", {}, ""});
  return out;
}

}  // namespace cufit::commands
