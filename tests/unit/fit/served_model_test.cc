// SPDX-License-Identifier: Apache-2.0
// What models keep of a sequence, reckoned by hand from their published configs.
#include "fit/serve/served_model.h"

#include "fit/serve/step_memory.h"
#include "serve_fixture.h"

namespace cufit::fit {
namespace served_model_test {

using serve_fixture::config;
using serve_fixture::model;
using serve_fixture::parsed;

CacheSettings settings(Engine engine, uint64_t tp = 1, const char* type = "auto",
                       uint64_t batched = 8192) {
  return {engine, *cache_type(engine, type), tp, batched};
}

uint64_t token(const std::string& name, Engine engine = Engine::vllm, const char* type = "auto") {
  return token_bytes(model(name), settings(engine, 1, type));
}

TEST(ServedModel, KeysAndValuesOfGroupedHeads) {
  EXPECT_EQ(token("llama-3.1-8b"), 2u * 32 * 8 * 128 * 2);  // 131,072
  EXPECT_EQ(token("llama-3.3-70b"), 327680u);
  EXPECT_EQ(token("qwen2.5-7b"), 57344u);
  EXPECT_EQ(token("qwen3-235b-a22b"), 192512u);
  EXPECT_EQ(token("llama-3.1-8b", Engine::vllm, "fp8"), 65536u);
  EXPECT_EQ(token("llama-3.1-8b", Engine::llama_cpp, "q8_0"), 131072u / 2 * 34 / 32);
  EXPECT_EQ(token("llama-3.1-8b", Engine::llama_cpp, "q4_0"), 131072u / 2 * 18 / 32);
}

TEST(ServedModel, OneCompressedVectorOfDeepSeek) {
  EXPECT_EQ(token("deepseek-v3"), 61u * 576 * 2);  // 70,272
  EXPECT_EQ(token("deepseek-v2-lite"), 27u * 576 * 2);
  EXPECT_EQ(token("deepseek-v3.2"), 61u * (576 * 2 + 128 + 4));
  EXPECT_EQ(token("deepseek-v3", Engine::vllm, "fp8"), 61u * 576);
  EXPECT_EQ(token("deepseek-v3.2", Engine::vllm, "fp8"), 61u * (656 + 132));
  EXPECT_EQ(token("deepseek-v3.2", Engine::sglang, "fp8_e4m3"), 61u * (656 + 132));
  // transformers keeps what it unpacks: 128 heads of 192 and of 128.
  EXPECT_EQ(token("deepseek-v3", Engine::transformers), 61u * 128 * (192 + 128) * 2);
}

TEST(ServedModel, LayersThatForget) {
  const ServedModel gemma = model("gemma-3-12b");
  EXPECT_EQ(token_bytes(gemma, settings(Engine::vllm)), 48u * 8192);
  EXPECT_EQ(far_token_bytes(gemma, settings(Engine::vllm)), 8u * 8192);
  EXPECT_EQ(gemma.cache[5].kind, CacheKind::full);
  EXPECT_EQ(gemma.cache[4].window, 1024u);
  EXPECT_EQ(far_token_bytes(model("gemma-2-9b"), settings(Engine::vllm)), 21u * 8192);
  EXPECT_EQ(far_token_bytes(model("gpt-oss-120b"), settings(Engine::vllm)), 18u * 2048);
  EXPECT_EQ(far_token_bytes(model("mistral-7b-v0.1"), settings(Engine::vllm)), 0u);
  EXPECT_EQ(model("llama-4-scout").cache[3].kind, CacheKind::full);
  EXPECT_EQ(model("llama-4-scout").cache[2].kind, CacheKind::chunk);
  // Says a window, and that it is not used.
  EXPECT_EQ(far_token_bytes(model("qwen2.5-7b"), settings(Engine::vllm)), 57344u);
  // Two sizes of heads.
  EXPECT_EQ(token("gemma-4-12b"), 40u * 8 * 512 * 2 + 8u * 1024 * 2);
}

// A window of nothing, or one that is off, is none, whatever the layers are called.
TEST(ServedModel, WindowsThatAreNone) {
  const auto kinds = [](const std::string& more) {
    std::string out;
    for (const CacheLayer& layer : parsed(config(more)).cache)
      out += layer.kind == CacheKind::full ? 'f' : layer.kind == CacheKind::window ? 'w' : 'c';
    return out;
  };
  const std::string sliding = R"(,"layer_types":["sliding_attention","full_attention"])";
  EXPECT_EQ(kinds(sliding + R"(,"sliding_window":512)"), "wf");
  EXPECT_EQ(kinds(sliding + R"(,"sliding_window":null)"), "ff");
  EXPECT_EQ(kinds(sliding + R"(,"sliding_window":0)"), "ff");
  EXPECT_EQ(kinds(sliding + R"(,"sliding_window":512,"use_sliding_window":false)"), "ff");
  const std::string chunked = R"(,"layer_types":["chunked_attention","full_attention"])";
  EXPECT_EQ(kinds(chunked + R"(,"attention_chunk_size":512)"), "cf");
  EXPECT_EQ(kinds(chunked + R"(,"attention_chunk_size":null)"), "ff");
  EXPECT_EQ(kinds(R"(,"sliding_window":512)"), "ww");
  // Qwen 2 and 3 have it off where they do not say.
  for (const char* type : {"qwen2", "qwen3", "qwen2_moe", "qwen3_moe"}) {
    const std::string qwen = std::string(R"(,"sliding_window":512,"model_type":")") + type + "\"";
    EXPECT_EQ(kinds(qwen), "ff") << type;
    EXPECT_EQ(kinds(qwen + sliding), "ff") << type;
    EXPECT_EQ(kinds(qwen + R"(,"use_sliding_window":true,"max_window_layers":1)"), "fw") << type;
  }
}

// All queries of Falcon share a head, though its config names as many heads as it has.
TEST(ServedModel, FalconHasOneHeadOfKeys) {
  const auto heads = [](const std::string& more) {
    return parsed(config(R"(,"model_type":"falcon","num_kv_heads":12,"num_key_value_heads":null)" +
                         more))
        .cache.front()
        .kv_heads;
  };
  EXPECT_EQ(heads(R"(,"multi_query":true)"), 1u);
  EXPECT_EQ(heads(""), 1u);
  EXPECT_EQ(heads(R"(,"multi_query":false)"), 12u);
  EXPECT_EQ(heads(R"(,"multi_query":true,"new_decoder_architecture":true,"num_kv_heads":4)"), 4u);
  EXPECT_EQ(parsed(config(R"(,"model_type":"gpt_bigcode","multi_query":true)")).cache[0].kv_heads,
            1u);
}

// Gemma 3: 8 of 48 layers see all, the others 1024 tokens. SGLang's pool has 0.8 of their tokens; transformers keeps
// a window as a view of the whole prompt (Mistral 7B v0.1 with 32,768 tokens on an H200: 8.8 GiB beside its weights).
TEST(ServedModel, WindowsOfOtherEngines) {
  const ServedModel gemma = model("gemma-3-12b");
  const CacheUse plain(gemma, settings(Engine::transformers));
  EXPECT_EQ(plain.bytes(500, 1), 500u * 48 * 8192);
  EXPECT_EQ(plain.bytes(10000, 3), uint64_t{3} * 10000 * 48 * 8192);
  const CacheUse pool(gemma, settings(Engine::sglang));
  EXPECT_EQ(pool.bytes(10000, 2), uint64_t{20000} * (8 + 32) * 8192);
}

TEST(ServedModel, PicturesTakeMore) {
  ServedModel gemma = model("gemma-3-12b");
  const auto step = [&] {
    return step_memory(gemma, Engine::vllm, 1, {}, knowledge::Knowledge::builtin()).activation;
  };
  const Range with = step();
  gemma.config.has_pictures = false;
  EXPECT_EQ(with.usual - step().usual, uint64_t{300} << 20);
  EXPECT_EQ(with.upper - step().upper, uint64_t{2048} << 20);
}

TEST(ServedModel, LayersThatUseTheCacheOfOthers) {
  EXPECT_EQ(model("gemma-3n-e4b").cache.size(), 20u);
  EXPECT_EQ(token("gemma-3n-e4b"), 20u * 2 * 512 * 2);
}

TEST(ServedModel, StatesOfRecurrentLayers) {
  const ServedModel next = model("qwen3-next-80b");
  EXPECT_EQ(token_bytes(next, settings(Engine::vllm)), 12u * 2 * 512 * 2);
  const uint64_t conv = (2 * 16 * 128 + 32 * 128) * 3, state = 32 * 128 * 128;
  EXPECT_EQ(state_bytes(next, settings(Engine::vllm)), 36u * (conv + state) * 2);
  EXPECT_EQ(state_bytes(next, settings(Engine::llama_cpp)), 36u * (conv + state) * 4);
  // Its config asks for states in fp32.
  EXPECT_EQ(state_bytes(model("qwen3.5-35b-a3b"), settings(Engine::vllm)),
            30u * (conv * 2 + state * 4));
  const ServedModel jamba = model("jamba-v0.1");
  EXPECT_EQ(token_bytes(jamba, settings(Engine::vllm)), 4u * 2 * 8 * 128 * 2);
  EXPECT_EQ(state_bytes(jamba, settings(Engine::vllm)), 28u * (8192 * 3 + 8192 * 16) * 2);
  const ServedModel granite = model("granite-4-h-small");
  EXPECT_EQ(token_bytes(granite, settings(Engine::vllm)), 4u * 2 * 8 * 128 * 2);
  EXPECT_EQ(state_bytes(granite, settings(Engine::vllm)),
            36u * ((8192 + 2 * 128) * 3 + 128 * 64 * 128) * 2);
  const ServedModel nemotron = model("nemotron-h-8b");
  EXPECT_EQ(token_bytes(nemotron, settings(Engine::vllm)), 4u * 2 * 8 * 128 * 2);
  EXPECT_EQ(state_bytes(nemotron, settings(Engine::vllm)),
            24u * ((8192 + 2 * 8 * 128) * 3 * 2 + 128 * 64 * 128 * 4));
}

TEST(ServedModel, KvHeadsAreReplicatedBeyondTheirNumber) {
  const ServedModel qwen = model("qwen2.5-7b");  // 4 KV heads
  const uint64_t one = CacheUse(qwen, settings(Engine::sglang)).bytes(1000, 1);
  EXPECT_EQ(CacheUse(qwen, settings(Engine::sglang, 2)).bytes(1000, 1), one / 2);
  EXPECT_EQ(CacheUse(qwen, settings(Engine::sglang, 4)).bytes(1000, 1), one / 4);
  EXPECT_EQ(CacheUse(qwen, settings(Engine::sglang, 28)).bytes(1000, 1), one / 4);
  const ServedModel deepseek = model("deepseek-v3");
  EXPECT_EQ(CacheUse(deepseek, settings(Engine::sglang, 8)).bytes(1000, 1), 70272000u);
}

TEST(ServedModel, WhatIsNoDecoderIsSaid) {
  const auto why = [](const std::string& text) {
    const auto config = formats::parse_decoder_config(text, "c");
    if (!config) return config.error().what;
    const auto got = served_model(*config, "c");
    return got ? "taken" : got.error().what;
  };
  EXPECT_EQ(
      why(R"({"model_type":"bert","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":1})"),
      "c: the model type `bert` is not one whose cache cufit knows");
  EXPECT_EQ(why(R"({"model_type":"longcat_flash"})"),
            "c: the model type `longcat_flash` is not one whose cache cufit knows");
  EXPECT_EQ(why(config(R"(,"num_key_value_heads":13)")), "c: 13 KV heads for 12 attention heads");
  EXPECT_EQ(why("{}"), "c: says no number of layers (`num_hidden_layers`)");
  EXPECT_EQ(
      why(R"({"model_type":"llama","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":1,)"
          R"("layer_types":["odd"]})"),
      "c: layer 0 is `odd`, a kind of layer that cufit does not know");
  EXPECT_EQ(why(R"({"num_hidden_layers":1e18})"), "c: `num_hidden_layers` is beyond any model");
  EXPECT_EQ(why(R"({"num_hidden_layers":5000})"), "c: 5000 layers");
}

TEST(ServedWeights, ByTheConfigAlone) {
  const auto bytes = [](const std::string& name) {
    const auto got = reckoned_weight_bytes(model(name), name);
    EXPECT_TRUE(got) << got.error().what;
    return got ? static_cast<double>(*got) : 0.0;
  };
  // Published counts of parameters, two bytes each.
  EXPECT_NEAR(bytes("llama-3.1-8b"), 2 * 8030261248.0, 2e6);
  EXPECT_NEAR(bytes("qwen2.5-7b"), 2 * 7615616512.0, 1e6);
  EXPECT_NEAR(bytes("qwen3-30b-a3b"), 2 * 30532122624.0, 2e6);
  EXPECT_NEAR(bytes("mixtral-8x7b"), 2 * 46702792704.0, 2e6);
  EXPECT_NEAR(bytes("deepseek-v2-lite"), 2 * 15706484224.0, 2e6);
  EXPECT_NEAR(bytes("deepseek-v3") / 2 / 671.03e9, 1, 0.001);
  EXPECT_NEAR(bytes("gemma-2-9b"), 2 * 9241705984.0, 2e6);
  EXPECT_NEAR(bytes("qwen3-next-80b") / 2 / 79.67e9, 1, 0.005);
  EXPECT_NEAR(bytes("jamba-v0.1") / 2 / 51.57e9, 1, 0.005);
  EXPECT_FALSE(reckoned_weight_bytes(model("gpt-oss-20b"), "c"));
}

formats::Tensor tensor(std::string name, std::vector<uint64_t> shape, std::string type = "BF16") {
  formats::Tensor out{std::move(name), std::move(type), std::move(shape), 1, 0};
  for (const uint64_t size : out.shape) out.elements *= size;
  out.bytes = out.elements * *formats::dtype_bits(out.dtype) / 8;
  return out;
}

TEST(ServedWeights, SplitAsEnginesSplit) {
  ServedModel qwen = model("qwen2.5-7b");
  const auto each = [&](const formats::Tensor& one, uint64_t tp) {
    const std::vector<formats::Tensor> list{one};
    return served_weights(qwen, list, Engine::vllm, tp, "m")->gpu_bytes;
  };
  const std::string layer = "model.layers.0.";
  EXPECT_EQ(each(tensor(layer + "self_attn.q_proj.weight", {3584, 3584}), 4), 3584u * 3584 * 2 / 4);
  EXPECT_EQ(each(tensor(layer + "self_attn.k_proj.weight", {512, 3584}), 7), 512u * 3584 * 2 / 4);
  EXPECT_EQ(each(tensor(layer + "input_layernorm.weight", {3584}), 4), 3584u * 2);
  EXPECT_EQ(each(tensor("lm_head.weight", {152065, 3584}), 2), 152128u * 3584 * 2 / 2);
  EXPECT_EQ(each(tensor(layer + "mlp.up_proj.weight", {64, 64}, "F32"), 1), 64u * 64 * 2);
  EXPECT_EQ(each(tensor("model.layers.28.mlp.up_proj.weight", {64, 64}), 1), 0u);
  EXPECT_EQ(each(tensor("mtp.fc.weight", {64, 64}), 1), 0u);
  qwen.config.tied = true;
  EXPECT_EQ(each(tensor("lm_head.weight", {152064, 3584}), 1), 0u);
}

TEST(ServedWeights, TheCpuKeepsGgufsEmbedding) {
  ServedModel llama = model("llama-3.1-8b");
  std::vector<formats::Tensor> tensors;
  for (const auto& [name, bytes] :
       {std::pair("token_embd.weight", 1000u), std::pair("output.weight", 700u),
        std::pair("blk.0.attn_q.weight", 50u), std::pair("blk.31.attn_q.weight", 60u)})
    tensors.push_back({name, "Q4_K", {}, 0, bytes});
  ServedWeights got = *served_weights(llama, tensors, Engine::llama_cpp, 1, "m");
  EXPECT_EQ(got.bytes, 1810u);
  EXPECT_EQ(got.gpu_bytes, 810u);
  EXPECT_EQ(got.layer_bytes, 60u);
  EXPECT_EQ(got.output_bytes, 700u);
  // Sums of a hostile header end at a bound.
  std::vector<formats::Tensor> many(64, tensors[2]);
  for (formats::Tensor& one : many) one.bytes = uint64_t{1} << 60;
  for (const uint64_t gpus : {1, 3})
    EXPECT_EQ(served_weights(llama, many, Engine::llama_cpp, gpus, "m")->gpu_bytes,
              uint64_t{1} << 60);
  llama.config.tied = true;  // the output is a second copy of it
  tensors.erase(tensors.begin() + 1);
  EXPECT_EQ(served_weights(llama, tensors, Engine::llama_cpp, 1, "m")->gpu_bytes, 1110u);
}

}  // namespace served_model_test
}  // namespace cufit::fit
