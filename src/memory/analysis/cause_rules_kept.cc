// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "memory/analysis/cause_rules.h"
#include "memory/analysis/stack_roles.h"

namespace cufit::analysis {
namespace {

bool is_open_at(const OomCase& facts, StepMarkKind kind, uint32_t event) {
  return std::any_of(facts.steps.marks.begin(), facts.steps.marks.end(), [&](const StepMark& mark) {
    return mark.kind == kind && mark.open && mark.begin <= event;
  });
}

}  // namespace

std::string evaluating_frame(const OomCase& facts, uint32_t stack) {
  constexpr std::array<std::string_view, 6> k_words = {"valid",   "eval",  "test",
                                                       "predict", "infer", "generate"};
  if (stack == memory::k_no_stack) return "";
  for (const uint32_t number : facts.snapshot.python_frames(stack)) {
    const memory::Frame& frame = facts.snapshot.stacks.frame(number);
    const std::string_view name = facts.snapshot.text(frame.name);
    const std::string_view file = facts.snapshot.text(frame.filename);
    if (file.find("-packages/torch/") != std::string_view::npos || name == "eval") continue;
    for (const std::string_view word : k_words)
      if (name.find(word) != std::string_view::npos) return std::string(name);
  }
  return "";
}

std::optional<Cause> weights_exceed_capacity(const OomCase& facts) {
  if (!facts.oom || facts.steps.finished > 0) return std::nullopt;
  const StackRoles roles(facts.snapshot);
  const bool moving = roles[facts.oom_stack] == StackRole::module_move;
  const uint64_t parameters = held(facts, Category::parameters);
  if (parameters == 0 || parameters * 10 < facts.at.allocated_bytes * 9) return std::nullopt;
  if (!moving && (facts.steps.known() || roles.any())) return std::nullopt;
  Cause cause{"weights_exceed_capacity", moving ? Confidence::certain : Confidence::likely, {}, {}};
  cause.evidence.push_back({moving ? "moving_model" : "only_parameters",
                            {bytes("parameters", parameters), bytes("tried", facts.oom->rounded)}});
  return cause;
}

// A model of a later phase beside one of the same sizes from an earlier one.
std::optional<Cause> stale_reference(const OomCase& facts) {
  if (!facts.oom || facts.steps.finished == 0) return std::nullopt;
  const uint32_t last_begin = facts.steps.begins.front();
  std::map<uint64_t, uint32_t> early;  // size -> how many
  uint64_t late_bytes = 0, twin_bytes = 0;
  std::map<uint32_t, uint64_t> models;  // steps before it -> bytes
  const StackRoles roles(facts.snapshot);
  for (size_t i = 0; i < facts.lifetimes.rows.size(); ++i) {
    const Lifetime& row = facts.lifetimes.rows[i];
    if (!is_kept(row, facts.lifetimes) || row.pool != 0) continue;
    if (row.alloc_event == k_before || row.alloc_event < last_begin) {
      ++early[row.requested_bytes];
    } else if (roles[row.stack] == StackRole::module_move) {
      late_bytes += row.block_bytes;
      const auto twin = early.find(row.requested_bytes);
      if (twin == early.end()) continue;
      twin_bytes += row.block_bytes;
      models[facts.steps.at(row.alloc_event).value_or(0)] += row.block_bytes;
    }
  }
  if (late_bytes == 0 || twin_bytes * 10 < late_bytes * 9 || twin_bytes < facts.oom->rounded)
    return std::nullopt;
  Cause cause{"stale_reference", Confidence::likely, {}, {}};
  for (const auto& [steps, model] : models)
    cause.evidence.push_back({"second_model",
                              {bytes("model", model), count("steps", steps),
                               bytes("parameters", held(facts, Category::parameters))}});
  return cause;
}

namespace {

uint64_t made_in_open_step(const OomCase& facts) {
  uint64_t made = 0;
  for (const StepMark& mark : facts.steps.marks) {
    if (mark.kind != StepMarkKind::optimizer || !mark.open) continue;
    made = 0;
    for (const Lifetime& row : facts.lifetimes.rows)
      if (row.alloc_event != k_before && row.alloc_event >= mark.begin &&
          is_allocated(row, oom_event(facts)))
        made += row.block_bytes;
  }
  return made;
}

}  // namespace

std::optional<Cause> optimizer_state(const OomCase& facts) {
  if (!facts.oom || !is_open_at(facts, StepMarkKind::optimizer, oom_event(facts)))
    return std::nullopt;
  const uint64_t state = held(facts, Category::optimizer_state);
  const uint64_t parameters = held(facts, Category::parameters);
  // Of a trace that began late only what this step makes is known to be new.
  const bool first = facts.steps.finished == 0 && facts.steps.first == 0 && parameters > 0 &&
                     (!began_late(facts) || made_in_open_step(facts) * 2 > state);
  // A later step has its state already; then its temporaries are what does not fit.
  Cause cause{"optimizer_state",
              first                                            ? Confidence::certain
              : began_late(facts) && facts.steps.finished == 0 ? Confidence::possible
                                                               : Confidence::likely,
              {},
              {}};
  cause.evidence.push_back(
      {first ? "first_optimizer_step" : "in_optimizer_step",
       {bytes("state", state), bytes("parameters", held(facts, Category::parameters)),
        bytes("tried", facts.oom->rounded)}});
  return cause;
}

namespace {

// A graph holds a tensor for nearly every operation of the forward pass; who keeps outputs keeps a
// few.
constexpr double k_least_graph = 8;

}  // namespace

std::optional<Cause> growth(const OomCase& facts) {
  const History& history = facts.history;
  if (history.trend != Trend::growing || history.growth_bytes == 0) return std::nullopt;
  // Without it the request would have been served, in a program that died.
  if (facts.oom && facts.limits &&
      needed(facts) - std::min(needed(facts), history.growth_bytes) > facts.limits->at_least)
    return std::nullopt;
  const size_t grown_steps = history.steps.size() > 2 ? history.steps.size() - 2 : 1;
  const double blocks_a_step =
      static_cast<double>(history.growing_blocks) / static_cast<double>(grown_steps);
  const bool graph = blocks_a_step >= k_least_graph;
  Cause cause{graph ? "graph_retained" : "tensors_kept",
              history.steps.size() >= 6 ? Confidence::certain : Confidence::likely,
              {},
              {}};
  if (!graph && blocks_a_step >= 4) cause.confidence = Confidence::likely;
  cause.evidence.push_back(
      {"grows",
       {bytes("per_step", history.growth_per_step_bytes), count("steps", history.steps.size()),
        bytes("growth", history.growth_bytes)}});
  const uint64_t rounded = static_cast<uint64_t>(blocks_a_step + 0.5);
  cause.evidence.push_back({graph          ? "graph_blocks"
                            : rounded == 1 ? "one_block"
                                           : "few_blocks",
                            {count("blocks", history.growing_blocks), count("per_step", rounded)}});
  return cause;
}

std::optional<Cause> growth_maybe(const OomCase& facts) {
  const std::vector<StepUse>& uses = facts.history.steps;
  if (!facts.oom || !began_late(facts) || facts.history.trend == Trend::growing)
    return std::nullopt;
  // The trace began inside the first, so three tell of one rise.
  if (uses.size() != 3) return std::nullopt;
  const StepUse &before = uses[1], &last = uses[2];
  if (last.begin_bytes <= before.begin_bytes) return std::nullopt;
  const uint64_t rise = last.begin_bytes - before.begin_bytes;
  if (rise < (1u << 20) || rise < last.peak_bytes / 50) return std::nullopt;
  uint32_t blocks = 0;
  for (size_t i = 0; i < facts.lifetimes.rows.size(); ++i) {
    const Lifetime& row = facts.lifetimes.rows[i];
    if (row.alloc_event == k_before || row.alloc_event < before.begin ||
        row.alloc_event >= before.end)
      continue;
    if (is_kept(row, facts.lifetimes) && facts.categories[i] != Category::gradients) ++blocks;
  }
  if (blocks == 0) return std::nullopt;
  Cause cause{
      blocks >= k_least_graph ? "graph_retained" : "tensors_kept", Confidence::possible, {}, {}};
  cause.evidence.push_back({"one_rise", {bytes("per_step", rise), count("blocks", blocks)}});
  return cause;
}

// Activations that pile up under a function that evaluates, or in the last steps without a backward
// pass between.
std::optional<Cause> eval_without_no_grad(const OomCase& facts) {
  if (!facts.oom || facts.steps.begins.empty() || kept_outputs(facts)) return std::nullopt;
  const std::string name = evaluating_frame(facts, facts.oom_stack);
  const uint32_t begin = facts.steps.begins.back();
  // The step before this one, unless the trace began inside it.
  const std::vector<StepUse>& uses = facts.history.steps;
  const bool compares = uses.size() > (began_late(facts) ? 2u : 1u);
  uint64_t kept = 0;
  uint32_t blocks = 0, usual_blocks = 0;
  bool backward = false;
  for (size_t i = 0; i < facts.lifetimes.rows.size(); ++i) {
    const Lifetime& row = facts.lifetimes.rows[i];
    if (facts.categories[i] != Category::activations) {
      backward = backward || (facts.categories[i] == Category::gradients &&
                              row.alloc_event != k_before && row.alloc_event >= begin);
      continue;
    }
    if (is_allocated(row, oom_event(facts)) && row.alloc_event >= begin) {
      kept += row.block_bytes;
      ++blocks;
    } else if (compares) {
      const StepUse& before = uses[uses.size() - 2];
      usual_blocks += row.alloc_event >= before.begin && row.alloc_event < before.end ? 1 : 0;
    }
  }
  if (backward || kept * 4 < facts.at.allocated_bytes) return std::nullopt;
  // More than one forward pass has piled up.
  const bool piles_up =
      facts.steps.finished + facts.steps.first > 0 && blocks >= usual_blocks + usual_blocks / 2;
  // Without a step to compare with only a function's name says that it evaluates.
  if (!piles_up || (name.empty() && usual_blocks == 0)) return std::nullopt;
  Cause cause{
      "eval_without_no_grad", name.empty() ? Confidence::possible : Confidence::likely, {}, {}};
  cause.evidence.push_back(
      {usual_blocks == 0 ? "no_backward_alone" : "no_backward",
       {bytes("kept", kept), count("blocks", blocks), count("usual", usual_blocks)}});
  if (!name.empty()) cause.evidence.push_back({"evaluating", {text("function", name)}});
  return cause;
}

}  // namespace cufit::analysis
