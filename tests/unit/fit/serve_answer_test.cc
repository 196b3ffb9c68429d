// SPDX-License-Identifier: Apache-2.0
// The answer of a serving question: what fits, the options that start it, what the engine says.
#include "fit/serve/serve_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace cufit::fit {
namespace serve_answer_test {

constexpr uint64_t k_one_gib = uint64_t{1} << 30;

ServedModel model(const std::string& name) {
  std::ifstream in(CUFIT_SOURCE_DIR "/tests/fit/serve/configs/" + name + ".json");
  std::stringstream text;
  text << in.rdbuf();
  return *served_model(*formats::parse_decoder_config(text.str(), name), name);
}

Card card(const std::string& name) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Card out = card_of(*knowledge.find_gpu(name), knowledge);
  out.asked = true;
  return out;
}

struct Ask {
  Engine engine = Engine::vllm;
  uint64_t tp = 1;
  std::optional<uint64_t> context, sequences;
  uint64_t weights = 0;  // of one GPU; 0: by the config
  uint64_t layer = 0;
};

ServeCard answer(const std::string& name, const Card& card, const Ask& ask) {
  const ServedModel served = model(name);
  ServedWeights weights;
  if (ask.weights != 0) {
    weights.bytes = weights.gpu_bytes = ask.weights;
    weights.layer_bytes = ask.layer;
  } else {
    weights = *served_weights(served, {}, ask.engine, ask.tp, name);
  }
  ServeQuestion question{
      ask.engine, ask.tp, ask.context, ask.sequences, *cache_type(ask.engine, "auto"), {card}};
  const auto got = serve_answer(served, weights, question, knowledge::Knowledge::builtin(), name);
  EXPECT_TRUE(got) << got.error().what;
  return got->cards.front();
}

std::string option(const ServeCard& card, const std::string& name) {
  const auto at = std::find(card.flags.begin(), card.flags.end(), name);
  return at == card.flags.end() || at + 1 == card.flags.end() ? "" : *(at + 1);
}

TEST(ServeAnswer, WhatFitsStartsTheUsualWay) {
  const ServeCard got = answer("llama-3.1-8b", card("A100 SXM4 80GB"), {});
  EXPECT_TRUE(got.fits);
  EXPECT_EQ(got.max_context, 131072u);
  EXPECT_TRUE(got.message.empty());
  EXPECT_EQ(option(got, "--max-model-len"), "131072");
  EXPECT_EQ(option(got, "--gpu-memory-utilization"), "0.9");
  EXPECT_EQ(option(got, "--max-num-seqs"), "256");
  EXPECT_EQ(option(got, "--max-num-batched-tokens"), "2048");
  EXPECT_EQ(option(got, "--tensor-parallel-size"), "");
}

TEST(ServeAnswer, WhatDoesNotFitStartsShorterAndSaysWhatTheEngineSays) {
  const ServeCard got = answer("llama-3.1-8b", card("GeForce RTX 4090"), {});
  EXPECT_FALSE(got.fits);
  EXPECT_NE(got.message.find("max seq len (131072), (16.00 GiB KV cache is needed"),
            std::string::npos)
      << got.message;
  EXPECT_NE(got.message.find("the estimated maximum model length is "), std::string::npos);
  EXPECT_EQ(got.message.find('{'), std::string::npos);
  EXPECT_GT(got.started_context, 16384u);
  EXPECT_LE(got.started_context, got.max_context);
  EXPECT_EQ(option(got, "--max-model-len"), std::to_string(got.started_context));
  EXPECT_GT(got.fp8_context, got.max_context);
  EXPECT_EQ(std::count(got.flags.begin(), got.flags.end(), "--enforce-eager"), 0);
}

TEST(ServeAnswer, NothingIsSaidToFitThatUpperValuesForbid) {
  // All that is free beside the upper values, and one block more.
  const Card h100 = card("H100 SXM5 80GB");
  const ServeCard room = answer("llama-3.1-8b", h100, {.context = 1024, .weights = k_one_gib});
  const uint64_t upper = room.step.activation.upper + room.step.other.upper;
  const uint64_t most = room.budget - upper - uint64_t{1024} * 131072;
  EXPECT_GE(room.step.activation.upper, room.step.activation.usual);
  Ask ask{.context = 1024, .sequences = 256, .weights = most};
  ask.sequences.reset();
  const ServeCard at = answer("llama-3.1-8b", h100, ask);
  EXPECT_TRUE(at.fits);
  EXPECT_EQ(option(at, "--gpu-memory-utilization"), "0.9");
  ask.weights = most + 16 * 131072;
  EXPECT_NE(option(answer("llama-3.1-8b", h100, ask), "--gpu-memory-utilization"), "0.9");
}

TEST(ServeAnswer, WeightsAloneAreTooMuch) {
  const ServeCard got = answer("llama-3.3-70b", card("GeForce RTX 4090"), {});
  EXPECT_FALSE(got.fits);
  EXPECT_TRUE(got.flags.empty());
  EXPECT_EQ(got.max_context, 0u);
  EXPECT_EQ(got.message, "torch.OutOfMemoryError: CUDA out of memory.");
  const ServeCard nearly =
      answer("llama-3.1-8b", card("GeForce RTX 4090"), {.weights = 22 * k_one_gib});
  EXPECT_NE(nearly.message.find("No available memory for the cache blocks."), std::string::npos);
}

TEST(ServeAnswer, RecurrentLayersLimitTheSequences) {
  const ServeCard got = answer("qwen3.8-27b", card("L40S"),
                               {.context = 16384, .weights = uint64_t{285} * k_one_gib / 10});
  ASSERT_TRUE(got.fits);
  EXPECT_LT(std::stoull(option(got, "--max-num-seqs")), 200u);
  EXPECT_GE(std::stoull(option(got, "--max-num-seqs")), got.max_sequences);
}

TEST(ServeAnswer, TensorParallelMustDivideTheHeads) {
  const ServeCard got = answer("qwen2.5-7b", card("A100 SXM4 80GB"), {.tp = 8});
  EXPECT_FALSE(got.fits);
  EXPECT_EQ(got.message,
            "Total number of attention heads (28) must be divisible by tensor parallel size (8).");
  EXPECT_TRUE(answer("qwen2.5-7b", card("A100 SXM4 80GB"), {.tp = 4}).fits);
}

TEST(ServeAnswer, OldCardsComputeInHalf) {
  const ServeCard got = answer("qwen2.5-1.5b", card("Tesla T4"), {.context = 4096});
  EXPECT_TRUE(got.fits);
  EXPECT_EQ(option(got, "--dtype"), "half");
}

TEST(ServeAnswer, CardsWithoutKernels) {
  const ServeCard got = answer("qwen2.5-1.5b", card("GeForce GTX 1080 Ti"), {.context = 4096});
  EXPECT_FALSE(got.fits);
  EXPECT_TRUE(got.flags.empty());
  EXPECT_NE(got.message.find("no kernel image"), std::string::npos);
}

TEST(ServeAnswer, SequencesAtOnce) {
  const ServeCard got =
      answer("llama-3.1-8b", card("A100 SXM4 80GB"), {.context = 32768, .sequences = 100});
  EXPECT_FALSE(got.fits);
  EXPECT_TRUE(got.message.empty());  // it starts, and others wait
  EXPECT_GT(got.max_sequences, 8u);
  EXPECT_LT(got.max_context, 32768u);
  EXPECT_EQ(got.started_context, 32768u);
}

TEST(ServeAnswer, LlamaCppLeavesLayersToTheProcessor) {
  Ask ask{
      .engine = Engine::llama_cpp, .context = 8192, .weights = 5 * k_one_gib, .layer = 150u << 20};
  const ServeCard whole = answer("llama-3.1-8b", card("GeForce RTX 4090"), ask);
  EXPECT_TRUE(whole.fits);
  EXPECT_EQ(whole.flags, (std::vector<std::string>{"-c", "8192", "-np", "1", "-ngl", "999"}));
  ask.weights = 40 * k_one_gib;
  ask.layer = 1200u << 20;
  const ServeCard part = answer("llama-3.1-8b", card("GeForce RTX 4090"), ask);
  EXPECT_FALSE(part.fits);
  EXPECT_GT(part.gpu_layers, 10u);
  EXPECT_LT(part.gpu_layers, 20u);
  EXPECT_EQ(option(part, "-ngl"), std::to_string(part.gpu_layers));
}

TEST(ServeAnswer, OtherEngines) {
  const ServeCard sglang =
      answer("llama-3.1-8b", card("A100 SXM4 80GB"), {.engine = Engine::sglang});
  EXPECT_TRUE(sglang.fits);
  EXPECT_EQ(option(sglang, "--context-length"), "131072");
  EXPECT_EQ(option(sglang, "--chunked-prefill-size"), "8192");
  const double share = std::stod(option(sglang, "--mem-fraction-static"));
  EXPECT_GT(share, 0.7);
  EXPECT_LT(share, 0.9);
  const ServeCard plain =
      answer("llama-3.1-8b", card("GeForce RTX 4090"), {.engine = Engine::transformers});
  EXPECT_FALSE(plain.fits);
  EXPECT_GT(plain.max_context, 8192u);
  EXPECT_LT(plain.max_context, 50000u);
  EXPECT_TRUE(plain.flags.empty());
}

TEST(ServeAnswer, ALengthThatTheModelWasNotMadeFor) {
  const ServedModel served = model("phi-2");
  ServeQuestion question;
  question.context = 4096;
  question.type = *cache_type(Engine::vllm, "auto");
  const auto got = serve_answer(served, {}, question, knowledge::Knowledge::builtin(), "phi-2");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::usage);
}

}  // namespace serve_answer_test
}  // namespace cufit::fit
