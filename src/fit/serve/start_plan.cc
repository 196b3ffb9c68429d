// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/start_plan.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace cufit::fit {
namespace {

constexpr double k_plan_gib = 1073741824, k_plan_mib = 1048576;
// What vLLM does where it is not told: 0.92 of the card since 0.2x (0.9 before), steps of 2048 tokens
// and 256 sequences; 8192 and 1024 from 70 GiB on, but not on an A100.
constexpr double k_vllm_usual = 0.92, k_vllm_most = 0.95;
constexpr uint64_t k_usual_sequences = 256, k_few_batch = 2048;
constexpr uint64_t k_large_sequences = 1024, k_large_batch = 8192;
constexpr double k_vllm_large_card = 70 * k_plan_gib;
constexpr double k_plan_margin = 256 * k_plan_mib;

double as_real(uint64_t value) { return static_cast<double>(value); }

double floored(double value, double step) { return std::floor(value / step + 1e-9) * step; }

// CUDA's context is there before the engine looks, and what else runs on the card.
double most_of_card(const Card& card, const knowledge::Knowledge& knowledge) {
  const double left = std::min(serving_size(knowledge, Engine::vllm, "free_mib", true) * k_plan_mib,
                               std::max(k_plan_margin, as_real(card.total) / 50));
  const double most =
      (as_real(card.total) - as_real(card.outside_allocator) - left) / as_real(card.total);
  return std::clamp(floored(most, 0.01), 0.05, k_vllm_most);
}

std::vector<StartPlan> vllm_plans(const ServeQuestion& question, const Card& card,
                                  uint64_t sequences, const knowledge::Knowledge& knowledge) {
  const bool large = as_real(card.total) >= k_vllm_large_card && !contains(card.name, "A100");
  StartPlan plan;
  const uint64_t usual = large ? k_large_sequences : k_usual_sequences;
  plan.step.sequences = std::max(sequences, question.sequences ? sequences : usual);
  plan.step.batched_tokens =
      std::max<uint64_t>(large ? k_large_batch : k_few_batch, plan.step.sequences);
  const double most = most_of_card(card, knowledge);
  std::vector<StartPlan> out;
  const auto add = [&](double share) {
    plan.share = share;
    plan.budget = static_cast<uint64_t>(as_real(card.total) * share);
    out.push_back(plan);
  };
  add(std::min(k_vllm_usual, most));
  if (most > k_vllm_usual) add(most);
  plan.step.batched_tokens = std::max<uint64_t>(k_few_batch, sequences);
  if (large && !question.sequences) {
    plan.step.sequences = std::max(sequences, k_usual_sequences);
    add(most);
  }
  if (!question.sequences) plan.step.sequences = std::max<uint64_t>(sequences, 16);
  add(most);
  plan.step.graphs = false;
  add(most);
  return out;
}

uint64_t sglang_tokens(const Card& card) {
  const double gib = as_real(card.total) / k_plan_gib;
  return gib < 20 ? 2048 : gib < 60 ? 4096 : gib < 160 ? 8192 : 16384;
}

uint64_t sglang_graphs(const Card& card, uint64_t tp) {
  const double gib = as_real(card.total) / k_plan_gib;
  if (gib < 20) return 8;
  if (gib < 60) return tp < 4 ? 48 : 160;
  return tp < 4 ? 256 : 512;
}

std::vector<StartPlan> sglang_plans(const ServeQuestion& question, const ServedModel& model,
                                    const Card& card, uint64_t sequences,
                                    const knowledge::Knowledge& knowledge) {
  std::vector<StartPlan> out;
  StartPlan plan;
  plan.step_apart = true;
  for (const uint64_t tokens : {sglang_tokens(card), k_few_batch}) {
    plan.step.batched_tokens = tokens;
    plan.step.sequences =
        std::min(sglang_graphs(card, question.tp),
                 question.sequences ? std::max<uint64_t>(8, sequences) : 1u << 20);
    const StepMemory step = step_memory(model, Engine::sglang, question.tp, plan.step, knowledge);
    // It measures the share after CUDA and its collectives are there.
    StepSettings none = plan.step;
    none.graphs = false;
    const uint64_t beside =
        step_memory(model, Engine::sglang, question.tp, none, knowledge).other.upper;
    const double free = as_real(card.total) - as_real(card.outside_allocator) - as_real(beside);
    if (free <= 0) continue;
    const double reserve = as_real(step.activation.upper) + as_real(step.other.upper - beside);
    plan.share = std::clamp(floored((free - reserve) / free, 0.001), 0.05, 0.95);
    plan.budget = static_cast<uint64_t>(free * plan.share);
    out.push_back(plan);
  }
  if (out.empty()) out.push_back(plan);
  return out;
}

void put_option(std::vector<std::string>& out, const char* option, const std::string& value) {
  out.emplace_back(option);
  out.push_back(value);
}

bool needs_half(const ServedModel& model, const Card& card) {
  const std::optional<ComputeCapability> cc = parse_compute_capability(card.cc);
  return cc && *cc < k_first_with_bf16 && model.config.quantisation.empty();
}

void vllm_flags(std::vector<std::string>& out, const ServeQuestion& question, const StartPlan& plan,
                uint64_t context) {
  if (question.tp > 1) put_option(out, "--tensor-parallel-size", std::to_string(question.tp));
  put_option(out, "--max-model-len", std::to_string(context));
  put_option(out, "--gpu-memory-utilization", share_text(plan.share));
  put_option(out, "--max-num-seqs", std::to_string(plan.step.sequences));
  put_option(out, "--max-num-batched-tokens", std::to_string(plan.step.batched_tokens));
  if (question.type.name != "auto") put_option(out, "--kv-cache-dtype", question.type.name);
  if (!plan.step.graphs) out.emplace_back("--enforce-eager");
}

void sglang_flags(std::vector<std::string>& out, const ServeQuestion& question,
                  const StartPlan& plan, uint64_t context, uint64_t sequences) {
  if (question.tp > 1) put_option(out, "--tp-size", std::to_string(question.tp));
  put_option(out, "--context-length", std::to_string(context));
  put_option(out, "--mem-fraction-static", share_text(plan.share));
  put_option(
      out, "--max-running-requests",
      std::to_string(std::max(sequences, question.sequences ? sequences : plan.step.sequences)));
  put_option(out, "--chunked-prefill-size", std::to_string(plan.step.batched_tokens));
  if (question.type.name != "auto") put_option(out, "--kv-cache-dtype", question.type.name);
}

void llama_flags(std::vector<std::string>& out, const ServeQuestion& question, uint64_t context,
                 uint64_t sequences, uint64_t gpu_layers) {
  const uint64_t cells = (context + 255) / 256 * 256;
  put_option(out, "-c", std::to_string(cells * sequences));
  put_option(out, "-np", std::to_string(sequences));
  put_option(out, "-ngl", std::to_string(gpu_layers == 0 ? 999 : gpu_layers));
  if (question.tp > 1) put_option(out, "-sm", "layer");
  if (question.type.name == "auto") return;
  put_option(out, "-fa", "on");  // a cache of values in blocks needs it
  put_option(out, "--cache-type-k", question.type.name);
  put_option(out, "--cache-type-v", question.type.name);
}

}  // namespace

std::string share_text(double share) {
  std::string out = format("{:.3f}", floored(share, 0.001));
  while (ends_with(out, "0")) out.pop_back();
  return out;
}

std::vector<StartPlan> start_plans(const ServeQuestion& question, const ServedModel& model,
                                   const Card& card, uint64_t sequences,
                                   const knowledge::Knowledge& knowledge) {
  if (question.engine == Engine::vllm) return vllm_plans(question, card, sequences, knowledge);
  if (question.engine == Engine::sglang)
    return sglang_plans(question, model, card, sequences, knowledge);
  StartPlan plan;
  plan.step.sequences = sequences;
  plan.budget = card.usable;
  return {plan};
}

std::vector<std::string> start_flags(const ServeQuestion& question, const ServedModel& model,
                                     const Card& card, const StartPlan& plan, uint64_t context,
                                     uint64_t sequences, uint64_t gpu_layers) {
  std::vector<std::string> out;
  if (question.engine == Engine::vllm) vllm_flags(out, question, plan, context);
  if (question.engine == Engine::sglang) sglang_flags(out, question, plan, context, sequences);
  if (question.engine == Engine::llama_cpp)
    llama_flags(out, question, context, sequences, gpu_layers);
  if ((question.engine == Engine::vllm || question.engine == Engine::sglang) &&
      needs_half(model, card))
    put_option(out, "--dtype", "half");
  return out;
}

}  // namespace cufit::fit
