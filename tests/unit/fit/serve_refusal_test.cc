// SPDX-License-Identifier: Apache-2.0
// What engines refuse however much memory there is.
#include "fit/serve/refusal.h"

#include "serve_fixture.h"

namespace cufit::fit {
namespace serve_refusal_test {

using namespace serve_fixture;  // NOLINT(google-build-using-namespace)

// "<id> <number>" of the refusal, empty for none.
std::string refused(const std::string& more, uint64_t tp, Engine engine = Engine::vllm,
                    const char* type = "auto", const char* gpu = "A100 SXM4 80GB") {
  ServeQuestion question;
  question.engine = engine;
  question.tp = tp;
  question.type = *cache_type(engine, type);
  const auto got =
      serve_refusal(parsed(config(more)), question, card(gpu), knowledge::Knowledge::builtin());
  if (!got) return "";
  const auto number = got->args.find("number");
  return got->id + (number == got->args.end() ? "" : " " + number->second);
}

TEST(ServeRefusal, HeadsVocabularyAndMlpAreSplitEvenly) {
  EXPECT_EQ(refused("", 1), "");
  EXPECT_EQ(refused("", 4), "");
  EXPECT_EQ(refused("", 5), "heads 12");
  EXPECT_EQ(refused("", 5, Engine::sglang), "heads 12");
  EXPECT_EQ(refused("", 5, Engine::transformers), "");
  EXPECT_EQ(refused("", 5, Engine::llama_cpp), "");
  // 1000 rows are padded to 1024, which 4 divides and 3 does not.
  EXPECT_EQ(refused("", 3), "vocabulary 1024");
  EXPECT_EQ(refused(R"(,"intermediate_size":1538)", 4), "mlp 1538");
}

// Four KV heads: one GPU of twelve holds one that two others hold as well; on six they come out odd.
TEST(ServeRefusal, KvHeadsAreReplicatedEvenly) {
  const std::string wide = R"(,"vocab_size":1536)";
  EXPECT_EQ(refused(wide, 12), "");
  EXPECT_EQ(refused(wide, 6), "keys 4");
  EXPECT_EQ(refused(wide, 3), "keys 4");
  EXPECT_EQ(refused(wide + R"(,"kv_lora_rank":512,"qk_rope_head_dim":64)", 6), "");
}

TEST(ServeRefusal, ExpertsAreSplitEvenly) {
  const std::string experts = R"(,"num_experts":8,"moe_intermediate_size":)";
  EXPECT_EQ(refused(experts + "512", 4), "");
  EXPECT_EQ(refused(experts + "514", 4), "experts 514");
  // No layer has the other MLP.
  EXPECT_EQ(refused(experts + R"(512,"intermediate_size":1538)", 4), "");
  EXPECT_EQ(refused(experts + R"(512,"intermediate_size":1538,"first_k_dense_replace":1)", 4),
            "mlp 1538");
}

TEST(ServeRefusal, BlocksOfScalesAreNotCut) {
  const auto fp8 = [](const std::string& more) {
    return R"(,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128])" + more +
           "}";
  };
  EXPECT_EQ(refused(fp8("") + R"(,"intermediate_size":1024)", 2), "");
  EXPECT_EQ(refused(fp8("") + R"(,"intermediate_size":1024)", 4),
            "block 192");  // three heads of 64
  const std::string spared = fp8(R"(,"modules_to_not_convert":["model.layers.0.self_attn"])");
  EXPECT_EQ(refused(spared, 4), "");
  EXPECT_EQ(refused(spared + R"(,"intermediate_size":1280)", 4), "block 320");
  // Qwen3-235B in fp8 on eight GPUs of SGLang, MiniMax-M2 on eight of vLLM.
  const std::string experts = R"(,"num_experts":8,"moe_intermediate_size":1536,)"
                              R"("num_attention_heads":64,"num_key_value_heads":8,"head_dim":128)";
  EXPECT_EQ(refused(fp8("") + experts, 4), "");
  EXPECT_EQ(refused(fp8("") + experts, 8), "expert_block 192");
}

TEST(ServeRefusal, LinearAttentionIsSplitByItsHeads) {
  const std::string linear =
      R"(,"model_type":"qwen3_next","full_attention_interval":2,"linear_num_key_heads":16,)"
      R"("linear_num_value_heads":32,"linear_key_head_dim":128,"linear_value_head_dim":128,)"
      R"("vocab_size":1536)";
  EXPECT_EQ(refused(linear, 4), "");
  EXPECT_EQ(refused(linear, 12), "linear_heads 16");
}

// llama.cpp: "K cache type q8_0 with block size 32 does not divide n_embd_head_k=80".
TEST(ServeRefusal, AQuantisedCacheDividesTheHeads) {
  EXPECT_EQ(refused("", 1, Engine::llama_cpp, "q8_0"), "");
  EXPECT_EQ(refused(R"(,"head_dim":80)", 1, Engine::llama_cpp, "q8_0"), "cache_block 80");
  EXPECT_EQ(refused(R"(,"head_dim":80)", 1, Engine::llama_cpp, "f32"), "");
  EXPECT_EQ(refused(R"(,"v_head_dim":72)", 1, Engine::llama_cpp, "q4_0"), "cache_block 72");
  const ServeCard got = answer(parsed(config(R"(,"head_dim":80)")), card("L4"),
                               {.engine = Engine::llama_cpp, .weights = 1u << 30, .type = "q8_0"});
  EXPECT_FALSE(got.fits);
  EXPECT_TRUE(got.flags.empty());
  EXPECT_EQ(got.message,
            "llama_init_from_model: K cache type q8_0 with block size 32 does not divide "
            "n_embd_head_k=80");
}

TEST(ServeRefusal, MessagesOfEnginesNameTheNumbers) {
  const Card a100 = card("A100 SXM4 80GB");
  const ServeCard heads = answer("qwen2.5-7b", a100, {.tp = 8});
  EXPECT_FALSE(heads.fits);
  EXPECT_TRUE(heads.flags.empty());
  EXPECT_EQ(heads.message,
            "Total number of attention heads (28) must be divisible by tensor parallel size (8).");
  EXPECT_EQ(answer("qwen2.5-7b", a100, {.tp = 7}).message,
            "AssertionError: 152064 is not divisible by 7");
  EXPECT_TRUE(answer("qwen2.5-7b", a100, {.tp = 4}).fits);
  EXPECT_EQ(answer("qwen2.5-7b", a100, {.engine = Engine::sglang, .tp = 8}).message,
            "AssertionError");
}

TEST(ServeRefusal, OldCards) {
  const auto at = [](const char* type, const char* gpu, Engine engine = Engine::vllm) {
    return refused(std::string(R"(,"model_type":")") + type + "\"", 1, engine, "auto", gpu);
  };
  EXPECT_EQ(at("qwen2", "GeForce GTX 1080 Ti"), "too_old");
  EXPECT_EQ(at("qwen2", "Tesla V100 SXM2 32GB"), "");
  EXPECT_EQ(at("qwen2", "Tesla V100 SXM2 32GB", Engine::sglang), "too_old");
  // They have no bf16, and vLLM takes these in nothing smaller than fp32 then.
  for (const char* type : {"gemma2", "gemma3", "gemma3_text", "glm4"}) {
    EXPECT_EQ(at(type, "Tesla T4"), "half") << type;
    EXPECT_EQ(at(type, "A10"), "") << type;
    EXPECT_EQ(at(type, "Tesla T4", Engine::sglang), "") << type;
  }
  const ServeCard gemma = answer("gemma-2-2b", card("Tesla T4"), {.context = 4096});
  EXPECT_TRUE(gemma.flags.empty());
  EXPECT_EQ(gemma.message.substr(0, 66),
            "ValueError: The model type 'gemma2' does not support float16. Reas");
  const ServeCard qwen = answer("qwen2.5-1.5b", card("Tesla T4"), {.context = 4096});
  EXPECT_TRUE(qwen.fits);
  EXPECT_EQ(option(qwen, "--dtype"), "half");
  EXPECT_EQ(option(answer("qwen2.5-1.5b", card("A10"), {.context = 4096}), "--dtype"), "");
  ServedModel awq = model("qwen2.5-1.5b");
  awq.config.quantisation = "awq";
  EXPECT_EQ(
      option(answer(awq, card("Tesla T4"), {.context = 4096, .weights = 1u << 30}), "--dtype"), "");
}

}  // namespace serve_refusal_test
}  // namespace cufit::fit
