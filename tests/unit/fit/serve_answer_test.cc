// SPDX-License-Identifier: Apache-2.0
// The answer of a serving question: what fits, the options that start it, what the engine says.
#include "serve_fixture.h"

namespace cufit::fit {
namespace serve_answer_test {

using namespace serve_fixture;  // NOLINT(google-build-using-namespace)

constexpr uint64_t k_one_gib = uint64_t{1} << 30;

TEST(ServeAnswer, WhatFitsStartsTheUsualWay) {
  const ServeCard got = answer("llama-3.1-8b", card("A100 SXM4 80GB"), {});
  EXPECT_TRUE(got.fits);
  EXPECT_EQ(got.max_context, 131072u);
  EXPECT_TRUE(got.message.empty());
  EXPECT_EQ(option(got, "--max-model-len"), "131072");
  EXPECT_EQ(option(got, "--gpu-memory-utilization"), "0.92");
  EXPECT_EQ(option(got, "--max-num-seqs"), "256");
  EXPECT_EQ(option(got, "--max-num-batched-tokens"), "2048");
  EXPECT_EQ(option(got, "--tensor-parallel-size"), "");
}

// vLLM's own defaults go by the card: larger steps from 70 GiB on, but not on an A100.
TEST(ServeAnswer, LargeCardsHaveLargerSteps) {
  const ServeCard got = answer("llama-3.1-8b", card("H100 SXM5 80GB"), {.context = 8192});
  EXPECT_EQ(option(got, "--max-num-seqs"), "1024");
  EXPECT_EQ(option(got, "--max-num-batched-tokens"), "8192");
  // Where those leave too little, the steps of smaller cards come before very few sequences.
  const ServeCard tight = answer("llama-3.1-8b", card("H100 SXM5 80GB"),
                                 {.context = 8192, .weights = uint64_t{705} * k_one_gib / 10});
  ASSERT_TRUE(tight.fits);
  EXPECT_EQ(option(tight, "--max-num-seqs"), "256");
  EXPECT_EQ(option(tight, "--max-num-batched-tokens"), "2048");
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
  EXPECT_EQ(option(at, "--gpu-memory-utilization"), "0.92");
  ask.weights = most + 16 * 131072;
  EXPECT_NE(option(answer("llama-3.1-8b", h100, ask), "--gpu-memory-utilization"), "0.92");
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

TEST(ServeAnswer, SequencesAtOnce) {
  const ServeCard got =
      answer("llama-3.1-8b", card("A100 SXM4 80GB"), {.context = 32768, .sequences = 100});
  EXPECT_FALSE(got.fits);
  EXPECT_TRUE(got.message.empty());  // it starts, and others wait
  EXPECT_GT(got.max_sequences, 8u);
  EXPECT_LT(got.max_context, 32768u);
  EXPECT_EQ(got.started_context, 32768u);
}

TEST(ServeAnswer, LlamaCppLeavesLayersToTheCpu) {
  Ask ask{
      .engine = Engine::llama_cpp, .context = 8192, .weights = 5 * k_one_gib, .layer = 150u << 20};
  const ServeCard whole = answer("llama-3.1-8b", card("GeForce RTX 4090"), ask);
  EXPECT_TRUE(whole.fits);
  EXPECT_EQ(whole.flags, (std::vector<std::string>{"-c", "8192", "-np", "1", "-ngl", "999"}));
  ask.weights = 40 * k_one_gib;
  ask.layer = 2000u << 20;
  const ServeCard part = answer("llama-3.1-8b", card("GeForce RTX 4090"), ask);
  EXPECT_FALSE(part.fits);
  // Of the card what is beside the step is for layers of 2000 MiB and 8192 tokens of 4096 bytes.
  const uint64_t room = part.budget - part.step.activation.upper - part.step.other.upper;
  const uint64_t layer = ask.layer + 8192 * 4096;
  EXPECT_EQ(part.gpu_layers, room / layer + 1);  // and the output, which costs nothing here
  EXPECT_EQ(option(part, "-ngl"), std::to_string(part.gpu_layers));
  // The output is first: with two layers' bytes of its own it leaves two layers fewer.
  ask.output = 2 * layer;
  const ServeCard output = answer("llama-3.1-8b", card("GeForce RTX 4090"), ask);
  EXPECT_EQ(output.gpu_layers, part.gpu_layers - 2);
  ask.output = 40 * k_one_gib;
  EXPECT_TRUE(answer("llama-3.1-8b", card("GeForce RTX 4090"), ask).flags.empty());
  // Two GPUs take twice as many.
  ask.output = 0;
  ask.tp = 2;
  EXPECT_EQ(answer("llama-3.1-8b", card("GeForce RTX 4090"), ask).gpu_layers,
            2 * (room / layer) + 1);
}

// Layers for speculation stand between the output and the others, and `-ngl` counts them.
TEST(ServeAnswer, LlamaCppCountsLayersForSpeculation) {
  const Ask ask{.engine = Engine::llama_cpp,
                .context = 8192,
                .weights = 40 * k_one_gib,
                .layer = 1200u << 20};
  ServedModel llama = model("llama-3.1-8b");
  const uint64_t plain = answer(llama, card("GeForce RTX 4090"), ask).gpu_layers;
  llama.config.next_token_layers = 1;
  EXPECT_EQ(answer(llama, card("GeForce RTX 4090"), ask).gpu_layers, plain + 1);
}

// A layer whose cache of all sequences is too much may hold that of fewer, and of fewer tokens.
TEST(ServeAnswer, LlamaCppTakesLessWhereNoLayerHoldsAll) {
  Ask ask{.engine = Engine::llama_cpp,
          .context = 131072,
          .sequences = 1024,
          .weights = 40 * k_one_gib,
          .layer = 1200u << 20};
  const ServeCard fewer = answer("llama-3.1-8b", card("GeForce RTX 4090"), ask);
  EXPECT_EQ(option(fewer, "-np"), "32");  // half a GiB each
  EXPECT_EQ(fewer.started_context, 131072u);
  ask.layer = fewer.budget - fewer.step.activation.upper - fewer.step.other.upper - (300u << 20);
  const ServeCard shorter = answer("llama-3.1-8b", card("GeForce RTX 4090"), ask);
  EXPECT_EQ(shorter.started_sequences, 1u);
  EXPECT_EQ(shorter.started_context, 65536u);  // 256 MiB of a layer
  EXPECT_EQ(shorter.gpu_layers, 2u);
}

TEST(ServeAnswer, CacheTypesOfLlamaCpp) {
  Ask ask{.engine = Engine::llama_cpp, .context = 8192, .weights = k_one_gib, .type = "q8_0"};
  ask.tp = 2;
  EXPECT_EQ(
      answer("llama-3.1-8b", card("GeForce RTX 4090"), ask).flags,
      (std::vector<std::string>{"-c", "8192", "-np", "1", "-ngl", "999", "-sm", "layer", "-fa",
                                "on", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0"}));
}

TEST(ServeAnswer, CacheTypesOfOthers) {
  const Ask ask{.tp = 2, .context = 8192, .type = "fp8_e4m3"};
  const ServeCard vllm = answer("llama-3.1-8b", card("L40S"), ask);
  EXPECT_EQ(option(vllm, "--kv-cache-dtype"), "fp8_e4m3");
  EXPECT_EQ(option(vllm, "--tensor-parallel-size"), "2");
  EXPECT_EQ(vllm.fp8_context, 0u);
  Ask other = ask;
  other.engine = Engine::sglang;
  const ServeCard sglang = answer("llama-3.1-8b", card("L40S"), other);
  EXPECT_EQ(option(sglang, "--kv-cache-dtype"), "fp8_e4m3");
  EXPECT_EQ(option(sglang, "--tp-size"), "2");
  EXPECT_EQ(option(sglang, "--tensor-parallel-size"), "");
}

// Without CUDA graphs 240 MiB less are needed: enough for a cache, where weights take the rest.
TEST(ServeAnswer, NoGraphsWhereNothingElseStarts) {
  const Card l4 = card("L4");
  Ask ask{.context = 1024, .weights = k_one_gib};
  const ServeCard room = answer("llama-3.1-8b", l4, ask);
  EXPECT_FALSE(has(room, "--enforce-eager"));
  bool eager = false;
  for (uint64_t weights = 18 * k_one_gib; weights < 23 * k_one_gib && !eager;
       weights += 64u << 20) {
    ask.weights = weights;
    const ServeCard got = answer("llama-3.1-8b", l4, ask);
    if (!got.fits) break;
    eager = has(got, "--enforce-eager");
    EXPECT_EQ(eager, got.step.other.upper < (uint64_t{600} << 20));
  }
  EXPECT_TRUE(eager);
}

// The sampler of so many sequences leaves nothing; fewer start.
TEST(ServeAnswer, FewerSequencesWhereSoManyDoNotStart) {
  const ServeCard got =
      answer("llama-3.1-8b", card("GeForce RTX 4090"), {.context = 2048, .sequences = 100000});
  EXPECT_FALSE(got.fits);
  EXPECT_FALSE(got.message.empty());
  EXPECT_EQ(got.started_context, 2048u);
  EXPECT_EQ(option(got, "--max-num-seqs"), std::to_string(got.started_sequences));
  EXPECT_GE(got.started_sequences, 8u);
  EXPECT_LE(got.started_sequences, got.max_sequences);
  EXPECT_FALSE(has(got, "--enforce-eager"));
}

TEST(ServeAnswer, Fp8OnCardsThatKnowIt) {
  EXPECT_GT(answer("llama-3.1-8b", card("GeForce RTX 4090"), {}).fp8_context, 0u);
  EXPECT_EQ(answer("llama-3.1-8b", card("GeForce RTX 3090"), {}).fp8_context, 0u);
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
  EXPECT_EQ(plain.started_context, plain.max_context / 16 * 16);
  // Of many sequences at once it says how many it holds.
  const ServeCard many =
      answer("llama-3.1-8b", card("GeForce RTX 4090"),
             {.engine = Engine::transformers, .context = 4096, .sequences = 500});
  EXPECT_FALSE(many.fits);
  EXPECT_EQ(many.started_context, 4096u);
  EXPECT_EQ(many.started_sequences, many.max_sequences);
  EXPECT_GT(many.max_sequences, 1u);
}

// generate() of transformers 5.17 on an H200 below what a card has: so many sequences of so many tokens ran, and so many
// ran out of memory.
TEST(ServeAnswer, SequencesAtOnceThatWereMeasured) {
  struct Measured {
    std::string model, card;
    uint64_t context, ran, died;
  };
  const std::string k_small = "GeForce RTX 4090", k_large = "A100 PCIe 40GB";
  for (const auto& [name, of, context, ran, died] :
       {Measured{"llama-3.1-8b", k_small, 4096, 6, 7},
        Measured{"llama-3.1-8b", k_large, 4096, 19, 22},
        Measured{"qwen3-4b", k_small, 4096, 14, 15}, Measured{"qwen3-4b", k_large, 4096, 30, 35},
        Measured{"llama-3.2-1b", k_small, 4096, 40, 46},
        Measured{"mistral-7b-v0.1", k_small, 4096, 7, 9},
        Measured{"mistral-7b-v0.1", k_small, 30405, 0, 1}, Measured{"phi-4", k_large, 8192, 3, 4},
        Measured{"gemma-2-9b", k_small, 8192, 1, 2}, Measured{"gemma-2-9b", k_large, 2048, 20, 23},
        Measured{"qwen3-8b", k_large, 8192, 9, 11},
        Measured{"qwen2.5-3b", k_large, 2048, 105, 121}}) {
    const ServeCard got = answer(
        name, card(of), {.engine = Engine::transformers, .context = context, .sequences = 1});
    EXPECT_LT(got.max_sequences, died) << name << of << context;
    EXPECT_GE(got.max_sequences, ran * 9 / 10) << name << of << context;
  }
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
