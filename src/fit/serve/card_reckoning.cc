// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/card_reckoning.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/format.h"

namespace cufit::fit {
namespace {

constexpr ComputeCapability k_first_with_fp8{8, 9};
constexpr uint64_t k_least_context = 256;  // less serves nobody
constexpr double k_reckoned_gib = 1073741824;

// Binary search: the largest value up to `most` for which `fits`, 0 where 1 does not.
uint64_t largest_that(uint64_t most, const std::function<bool(uint64_t)>& fits) {
  if (most == 0 || !fits(1)) return 0;
  uint64_t low = 1, high = most;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

std::string gib_text(uint64_t bytes) {
  return format("{:.2f}", static_cast<double>(bytes) / k_reckoned_gib);
}

class CardReckoning {
 public:
  CardReckoning(const Serving& serving, const Card& card) : in_(serving) {
    static_cast<Card&>(out_) = card;
  }

  ServeCard run() {
    if (refused()) return std::move(out_);
    const std::vector<StartPlan> plans =
        start_plans(in_.question, in_.model, out_, in_.sequences, in_.knowledge);
    const StartPlan* chosen = nullptr;
    for (const StartPlan& plan : plans)
      if (chosen == nullptr && fits(plan, in_.context, in_.sequences)) chosen = &plan;
    out_.fits = chosen != nullptr;
    // What does not fit as asked is still started, with the plan that leaves most to the cache.
    if (chosen == nullptr) chosen = &roomiest(plans);
    figures(*chosen);
    if (out_.fits)
      started(*chosen, in_.context, in_.sequences);
    else
      less(*chosen, plans.front());
    return std::move(out_);
  }

 private:
  // Cards and tensor parallelism that engines do not take.
  bool refused() {
    const double least = serving_size(in_.knowledge, in_.question.engine, "least_capability");
    const std::optional<ComputeCapability> cc = parse_compute_capability(out_.cc);
    if (cc && cc->major + cc->minor / 10.0 < least - 0.01) {
      out_.message = message("too_old", {});
      return true;
    }
    const formats::DecoderConfig& config = in_.model.config;
    const uint64_t tp = in_.question.tp;
    const bool by_heads =
        in_.question.engine == Engine::vllm || in_.question.engine == Engine::sglang;
    if (!by_heads || tp == 1 || config.heads == 0) return false;
    const bool keys =
        config.kv_lora_rank != 0 || config.kv_heads % tp == 0 || tp % config.kv_heads == 0;
    if (config.heads % tp == 0 && keys) return false;
    out_.message =
        message("heads", {{"heads", std::to_string(config.heads)}, {"tp", std::to_string(tp)}});
    return true;
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
    return left > 0 &&
           cache(plan, in_.question.type).bytes(context, sequences) <= static_cast<uint64_t>(left);
  }

  uint64_t largest_context(const StartPlan& plan, uint64_t sequences) const {
    return largest_that(in_.most_context,
                        [&](uint64_t context) { return fits(plan, context, sequences); });
  }

  const StartPlan& roomiest(const std::vector<StartPlan>& plans) const {
    const StartPlan* best = &plans.front();
    // Without CUDA graphs it is slow: only where nothing starts with them.
    for (const StartPlan& plan : plans)
      if (plan.step.graphs || largest_context(*best, 1) < std::min(k_least_context, in_.context))
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
    out_.flags =
        start_flags(in_.question, in_.model, out_, plan, context, sequences, out_.gpu_layers);
  }

  // As much as starts: fewer sequences at once, then a shorter context, then layers on the processor.
  void less(const StartPlan& plan, const StartPlan& first) {
    const bool one = fits(plan, in_.context, 1);
    if (!one) say_why(first);
    uint64_t context = one ? in_.context : largest_context(plan, 1);
    const uint64_t page = in_.question.engine == Engine::llama_cpp ? 256 : 16;
    if (!one) context = context / page * page;
    const uint64_t sequences =
        in_.question.engine == Engine::llama_cpp || in_.question.engine == Engine::transformers
            ? std::max<uint64_t>(1, std::min(in_.sequences, out_.max_sequences))
            : in_.sequences;
    if (context >= std::min(k_least_context, in_.context)) {
      started(plan, context, one ? sequences : 1);
      with_fp8(plan);
      return;
    }
    if (in_.question.engine == Engine::llama_cpp) on_part(plan);
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

  // So many layers with their part of the cache as the card takes; the rest stays with the processor.
  void on_part(const StartPlan& plan) {
    const uint64_t layers = in_.model.config.layers;
    const uint64_t cells = cache(plan, in_.question.type).bytes(in_.context, in_.sequences);
    const uint64_t beside = out_.step.activation.upper + out_.step.other.upper;
    const uint64_t each =
        in_.weights.layer_bytes + cells / std::max<uint64_t>(1, in_.model.cache.size());
    if (each == 0 || plan.budget <= beside) return;
    const uint64_t count = std::min((plan.budget - beside) / each, layers - 1);
    if (count == 0) return;
    out_.gpu_layers = count;
    started(plan, in_.context, in_.sequences);
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
