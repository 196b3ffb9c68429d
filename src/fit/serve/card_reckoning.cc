// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/card_reckoning.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/format.h"
#include "base/largest_that.h"
#include "fit/serve/refusal.h"

namespace cufit::fit {
namespace {

constexpr ComputeCapability k_first_with_fp8{8, 9};
constexpr uint64_t k_last_sequences = 16;  // that plans go down to by themselves
constexpr double k_reckoned_gib = 1073741824;

std::string gib_text(uint64_t bytes) {
  return format("{:.2f}", static_cast<double>(bytes) / k_reckoned_gib);
}

class CardReckoning {
 public:
  CardReckoning(const Serving& serving, const Card& card) : in_(serving) {
    static_cast<Card&>(out_) = card;
  }

  ServeCard run() {
    out_.refused = serve_refusal(in_.model, in_.question, out_, in_.knowledge);
    if (out_.refused) {
      out_.message = message(out_.refused->id, out_.refused->args);
      return std::move(out_);
    }
    const std::vector<StartPlan> plans = plans_for(in_.question, in_.sequences);
    const StartPlan* chosen = nullptr;
    for (const StartPlan& plan : plans)
      if (chosen == nullptr && fits(plan, in_.context, in_.sequences)) chosen = &plan;
    out_.fits = chosen != nullptr;
    // What does not fit as asked is still started, with the plan that leaves most to the cache.
    figures(chosen != nullptr ? *chosen : roomiest(plans));
    if (out_.fits)
      started(*chosen, in_.context, in_.sequences);
    else
      less(roomiest(plans), plans.front());
    return std::move(out_);
  }

 private:
  std::vector<StartPlan> plans_for(const ServeQuestion& question, uint64_t sequences) const {
    return start_plans(question, in_.model, out_, sequences, in_.knowledge);
  }

  StepMemory step_of(const StartPlan& plan, uint64_t context, uint64_t sequences) const {
    StepSettings step = plan.step;
    if (in_.question.engine == Engine::transformers) {
      step.batched_tokens = context;
      step.sequences = sequences;
    }
    return step_memory(in_.model, in_.question.engine, in_.question.tp, step, in_.knowledge);
  }

  // What is left for the cache; below zero there is no cache.
  int64_t available(const StartPlan& plan, uint64_t context, uint64_t sequences) const {
    const StepMemory step = step_of(plan, context, sequences);
    const uint64_t beside = plan.step_apart ? 0 : step.activation.upper + step.other.upper;
    return static_cast<int64_t>(plan.budget) - static_cast<int64_t>(in_.weights.gpu_bytes) -
           static_cast<int64_t>(beside);
  }

  CacheUse cache(const StartPlan& plan, const CacheType& type) const {
    return CacheUse(in_.model,
                    {in_.question.engine, type, in_.question.tp, plan.step.batched_tokens});
  }

  bool fits(const StartPlan& plan, uint64_t context, uint64_t sequences) const {
    const int64_t left = available(plan, context, sequences);
    const uint64_t held = cache(plan, in_.question.type).bytes(context, sequences);
    const double beside =
        in_.question.engine == Engine::transformers
            ? serving_size(in_.knowledge, Engine::transformers, "cache_beside", true)
            : 0;
    return left > 0 && static_cast<double>(held) * (1 + beside) <= static_cast<double>(left);
  }

  uint64_t largest_context(const StartPlan& plan, uint64_t sequences) const {
    return largest_that(in_.most_context,
                        [&](uint64_t context) { return fits(plan, context, sequences); });
  }

  // Less serves nobody.
  uint64_t least_context() const { return std::min(k_serve_least_context, in_.context); }

  const StartPlan& roomiest(const std::vector<StartPlan>& plans) const {
    const StartPlan* best = &plans.front();
    // Without CUDA graphs it is slow: only where nothing starts with them.
    for (const StartPlan& plan : plans)
      if (plan.step.graphs || largest_context(*best, 1) < least_context())
        if (available(plan, in_.context, in_.sequences) >
            available(*best, in_.context, in_.sequences))
          best = &plan;
    return *best;
  }

  void figures(const StartPlan& plan) {
    out_.step = step_of(plan, in_.context, in_.sequences);
    out_.budget = plan.budget;
    const int64_t left = available(plan, in_.context, in_.sequences);
    out_.cache_available = left > 0 ? static_cast<uint64_t>(left) : 0;
    out_.cache_needed = cache(plan, in_.question.type).bytes(in_.context, in_.sequences);
    out_.max_context = largest_context(plan, in_.sequences);
    if (in_.question.engine == Engine::transformers)
      out_.max_sequences = largest_that(
          1u << 20, [&](uint64_t sequences) { return fits(plan, in_.context, sequences); });
    else if (left > 0)
      out_.max_sequences =
          cache(plan, in_.question.type).most_sequences(static_cast<uint64_t>(left), in_.context);
  }

  void started(StartPlan plan, uint64_t context, uint64_t sequences) {
    const uint64_t limit = cache(plan, in_.question.type).sequence_limit(out_.cache_available);
    if (limit != 0) plan.step.sequences = std::min(plan.step.sequences, limit);
    out_.started_context = context;
    out_.started_sequences = sequences;
    out_.flags =
        start_flags(in_.question, in_.model, out_, plan, context, sequences, out_.gpu_layers);
  }

  // As much as starts: fewer sequences at once, then a shorter context, then layers on the CPU.
  void less(const StartPlan& plan, const StartPlan& first) {
    const bool one = fits(plan, in_.context, 1);
    if (!one) say_why(first);
    const bool at_once =
        in_.question.engine == Engine::llama_cpp || in_.question.engine == Engine::transformers;
    if (one) {
      started(plan, in_.context,
              at_once ? std::clamp<uint64_t>(out_.max_sequences, 1, in_.sequences) : in_.sequences);
      with_fp8(plan);
      return;
    }
    if (!at_once && with_fewer()) return;
    if (shorter(plan)) {
      with_fp8(plan);
      return;
    }
    if (!at_once) {
      const std::vector<StartPlan> plans = fewer_plans(1);
      figures(roomiest(plans));
      if (shorter(roomiest(plans))) return;
    }
    if (in_.question.engine == Engine::llama_cpp) on_part(plan);
  }

  std::vector<StartPlan> fewer_plans(uint64_t sequences) const {
    ServeQuestion fewer = in_.question;
    fewer.sequences = sequences;
    return plans_for(fewer, sequences);
  }

  // A step of fewer sequences takes less. Without CUDA graphs it is slow: at last.
  bool with_fewer() {
    const uint64_t most = in_.question.sequences ? in_.sequences : k_last_sequences;
    for (const bool graphs : {true, false})
      for (uint64_t sequences = most / 2; sequences != 0; sequences /= 2)
        for (const StartPlan& plan : fewer_plans(sequences))
          if (plan.step.graphs == graphs && fits(plan, in_.context, sequences)) {
            figures(plan);
            started(plan, in_.context, sequences);
            return true;
          }
    return false;
  }

  bool shorter(const StartPlan& plan) {
    const uint64_t page = in_.question.engine == Engine::llama_cpp ? 256 : 16;
    const uint64_t context = largest_context(plan, 1) / page * page;
    if (context < least_context()) return false;
    started(plan, context, 1);
    return true;
  }

  void with_fp8(const StartPlan& plan) {
    const std::optional<ComputeCapability> cc = parse_compute_capability(out_.cc);
    const bool eight = cc && *cc >= k_first_with_fp8 && in_.question.type.name == "auto";
    const std::optional<CacheType> type = cache_type(in_.question.engine, "fp8_e4m3");
    if (!eight || !type || out_.cache_available == 0) return;
    const uint64_t context =
        cache(plan, *type).largest_context(out_.cache_available, in_.sequences, in_.most_context);
    if (context > out_.max_context) out_.fp8_context = context;
  }

  // `-ngl N` puts the output and the last N - 1 layers on the GPUs, with their part of the cache;
  // layers for speculation stand between the two and count. The rest stays with the CPU.
  void on_part(const StartPlan& plan) {
    const uint64_t beside = out_.step.activation.upper + out_.step.other.upper;
    const auto part_fits = [&](uint64_t layers, uint64_t context, uint64_t sequences) {
      if (std::max(in_.weights.layer_bytes, in_.weights.output_bytes) > plan.budget) return false;
      ServedModel last;
      last.config = in_.model.config;
      const std::vector<CacheLayer>& all = in_.model.cache;  // of a layer one, none or two
      const uint64_t kept = std::min<uint64_t>(
          all.size() > in_.model.config.layers ? 2 * layers : layers, all.size());
      last.cache.assign(all.end() - static_cast<ptrdiff_t>(kept), all.end());
      const uint64_t each = (layers + in_.question.tp - 1) / in_.question.tp;
      const uint64_t weights = in_.weights.output_bytes + each * in_.weights.layer_bytes + beside;
      const uint64_t cells =
          CacheUse(last, {in_.question.engine, in_.question.type, in_.question.tp})
              .bytes(context, sequences);
      return weights <= plan.budget && cells <= plan.budget - weights;
    };
    const auto layers_of = [&](uint64_t context, uint64_t sequences) {
      return largest_that(in_.model.config.layers - 1,
                          [&](uint64_t layers) { return part_fits(layers, context, sequences); });
    };
    uint64_t context = in_.context, sequences = in_.sequences, layers = 0;
    while ((layers = layers_of(context, sequences)) == 0 && sequences > 1) sequences /= 2;
    while (layers == 0 && context / 2 >= least_context()) {
      context = context / 2;
      layers = layers_of(context, 1);
    }
    if (layers == 0) return;
    out_.gpu_layers = layers + 1 + in_.model.config.next_token_layers;
    started(plan, context, sequences);
  }

  // The usual start is what the engine would have tried.
  void say_why(const StartPlan& plan) {
    const int64_t left = available(plan, in_.context, 1);
    if (in_.weights.gpu_bytes > out_.usable) {
      out_.message = message("weights", {});
    } else if (left <= 0) {
      out_.message = message("no_memory", {{"fraction", share_text(plan.share)}});
      if (out_.message.empty()) out_.message = message("context", {});
    } else {
      const uint64_t needed = cache(plan, in_.question.type).bytes(in_.context, 1);
      out_.message = message("context", {{"context", std::to_string(in_.context)},
                                         {"needed", gib_text(needed)},
                                         {"available", gib_text(static_cast<uint64_t>(left))},
                                         {"largest", std::to_string(largest_context(plan, 1))}});
    }
  }

  std::string message(std::string_view id, const std::map<std::string, std::string>& args) const {
    for (const knowledge::ServingMessageRow& row : in_.knowledge.serving_messages) {
      if (row.engine != engine_name(in_.question.engine) || row.id != id) continue;
      std::string out(row.text);
      for (const auto& [key, value] : args)
        if (const size_t at = out.find("{" + key + "}"); at != std::string::npos)
          out.replace(at, key.size() + 2, value);
      return out;
    }
    return {};
  }

  const Serving& in_;
  ServeCard out_;
};

}  // namespace

ServeCard reckon_card(const Serving& serving, const Card& card) {
  return CardReckoning(serving, card).run();
}

}  // namespace cufit::fit
