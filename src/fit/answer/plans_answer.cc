// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/plans_answer.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "fit/answer/plan_variants.h"
#include "fit/trace_parts.h"

namespace cufit::fit {
namespace {

using formats::TraceEvents;

// As one program, without the batch of one where it goes its own way.
Result<StepProgram> align_without_one(std::vector<TraceEvents> traces) {
  CUFIT_TRY(all, align(traces));
  if (all.differences.empty() || traces.size() < 3) return all;
  traces.erase(std::remove_if(traces.begin(), traces.end(),
                              [](const TraceEvents& trace) { return trace.fact("batch") == "1"; }),
               traces.end());
  return align(traces);
}

// Where nothing is known of other batch sizes, nor is it of the variants.
void keep_one_batch(std::vector<TraceEvents>& traces, uint64_t batch) {
  const auto same = std::find_if(traces.begin(), traces.end(), [&](const TraceEvents& trace) {
    return trace.fact("batch") == std::to_string(batch);
  });
  if (same != traces.end()) std::iter_swap(traces.begin(), same);
  traces.resize(1);
}

Result<PlanProgram> plan_program(const std::vector<std::string>& switches,
                                 const std::vector<TraceEvents>& traces) {
  PlanProgram out;
  out.switches = switches;
  std::vector<TraceEvents> plain;
  for (const TraceEvents& trace : traces) plain.push_back(without_micro_batches(trace));
  CUFIT_TRY(steps, align_without_one(std::move(plain)));
  out.steps = std::move(steps);
  out.dealing = dealing_of(switches, out.steps);
  if (std::all_of(traces.begin(), traces.end(), has_micro_batches)) {
    CUFIT_TRY(accumulating, align_without_one(traces));
    out.accumulating = std::move(accumulating);
  }
  return out;
}

// The traced variants as programs, the one as it is first. False where that one has none.
bool add_programs(std::vector<VariantTraces>& variants, const PlansAsked& asked,
                  const knowledge::Knowledge& knowledge, PlansAnswer& out,
                  std::vector<Warning>& warnings) {
  uint64_t own_beside = 0;  // NCCL of the program as it is
  const std::optional<ComputeCapability> cc = parse_compute_capability(asked.traced_card.cc);
  for (VariantTraces& variant : variants) {
    const std::vector<std::string>& switches = variant.switches;
    // Traced for another card: this one has no units for it, and would be slower.
    if (cc && *cc < k_first_with_bf16 &&
        std::find(switches.begin(), switches.end(), "bf16") != switches.end())
      continue;
    if (!asked.extrapolates) keep_one_batch(variant.traces, asked.batch);
    Result<PlanProgram> program = plan_program(switches, variant.traces);
    if (program) {
      const uint64_t beside = nccl_bytes(variant.traces[0], asked.traced_card, knowledge);
      if (out.programs.empty()) own_beside = beside;
      program->more_outside = beside - std::min(beside, own_beside);
      out.programs.push_back(std::move(*program));
      continue;
    }
    warnings.push_back({"plan_failed",
                        {{"switches", join(switches, " + ")}, {"detail", program.error().text()}},
                        ""});
    if (switches.empty()) return false;
  }
  return true;
}

std::vector<PlanCard> plan_cards(const PlansAsked& asked, PlansAnswer& out) {
  std::vector<PlanCard> cards;
  for (const Card& card : asked.cards) {
    if (!card.asked || card.usable == 0) continue;
    PlanCard on{card.name, setup_on(asked.setup, card)};
    on.setup.capacity = card.usable;
    cards.push_back(std::move(on));
    out.cards.push_back(card.name);
    out.usable.push_back(card.usable);
  }
  return cards;
}

// Rates of one kind of machine, arithmetic of another: times of neither.
void warn_of_other_links(const std::optional<MeasuredLinks>& links, const Card& card,
                         const knowledge::Knowledge& knowledge, std::vector<Warning>& warnings) {
  if (!links || links->gpu.empty() || knowledge.find_gpu(card.name) == nullptr) return;
  const std::vector<const knowledge::Gpu*> meant = knowledge.gpus_meant(links->gpu);
  const auto same = [&](const knowledge::Gpu* gpu) { return gpu->name == card.name; };
  if (meant.empty() || std::any_of(meant.begin(), meant.end(), same)) return;
  warnings.push_back({"plan_links_other",
                      {{"path", links->file}, {"gpu", links->gpu}, {"card", card.name}},
                      ""});
}

}  // namespace

PlansAnswer plans_answer(Traces& traces, const PlansAsked& asked,
                         const knowledge::Knowledge& knowledge) {
  PlansAnswer out;
  if (asked.batch == 0) {
    traces.warnings.push_back({"plan_no_batch", {}, ""});
    return out;
  }
  if (traces.whole.empty() || traces.whole.front().fact("micro_batches").empty()) {
    traces.warnings.push_back({"plan_untold", {}, ""});
    return out;
  }
  traces.variants.insert(traces.variants.begin(), VariantTraces{{}, std::move(traces.whole)});
  if (!add_programs(traces.variants, asked, knowledge, out, traces.warnings)) return out;
  if (!out.programs.front().accumulating && micro_batches(out.programs.front().steps) == 1)
    traces.warnings.push_back({"plan_no_accumulation", {}, ""});
  const std::vector<PlanCard> cards = plan_cards(asked, out);
  const Card& traced = asked.traced_card;
  PlanQuestion question;
  question.batch = asked.batch;
  question.accumulation = micro_batches(out.programs.front().steps);
  question.setup = setup_on(asked.setup, traced);
  question.speed = card_speed(traced.name, traced.cc, knowledge);
  question.links = link_speed(traced.name, traced.cc, knowledge);
  if (asked.links) question.links.node = asked.links->bytes_per_second;
  warn_of_other_links(asked.links, traced, knowledge, traces.warnings);
  out.measured = asked.links;
  out.node_rate = question.links.node;
  out.nvlink = question.links.nvlink;
  out.network_gbits = static_cast<uint64_t>(question.links.network_gbits);
  out.world = out.programs.front().dealing.world;
  out.speed_card = question.speed.card;
  out.speed_known = out.speed_card == traced.name;
  out.plans = plans_of(out.programs, question, cards);
  if (out.plans.plans.empty()) traces.warnings.push_back({"plan_untold", {}, ""});
  return out;
}

}  // namespace cufit::fit
