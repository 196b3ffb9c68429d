// SPDX-License-Identifier: Apache-2.0
// How long a sequence engines take of a model whose positions are stretched.
#include "fit/serve/context_length.h"

#include "serve_fixture.h"

namespace cufit::fit {
namespace context_length_test {

using namespace serve_fixture;  // NOLINT(google-build-using-namespace)

// "<usual>", or "<usual>/<most>" where they differ.
std::string length(const std::string& more, Engine engine = Engine::vllm) {
  const ContextLength got = context_length(parsed(config(more)).config, engine);
  return std::to_string(got.usual) + (got.most == got.usual ? "" : "/" + std::to_string(got.most));
}

std::string rope(const std::string& inside) { return ",\"rope_scaling\":{" + inside + "}"; }

TEST(ContextLength, OfYarnIsTheFirstLengthTimesTheFactor) {
  EXPECT_EQ(length(""), "4096");
  // Qwen 2.5 with its length as it was made, DeepSeek with the stretched one.
  const std::string qwen =
      rope(R"("type":"yarn","factor":4.0,"original_max_position_embeddings":4096)");
  EXPECT_EQ(length(qwen), "16384");
  EXPECT_EQ(length(qwen, Engine::transformers), "16384");
  EXPECT_EQ(length(qwen, Engine::sglang), "4096");  // it takes the length for stretched
  EXPECT_EQ(length(qwen, Engine::llama_cpp), "4096");
  const std::string deepseek =
      rope(R"("type":"yarn","factor":40,"original_max_position_embeddings":4096)") +
      R"(,"max_position_embeddings":163840)";
  EXPECT_EQ(length(deepseek), "163840");
  EXPECT_EQ(length(deepseek, Engine::sglang), "163840");
  EXPECT_EQ(length(rope(R"("rope_type":"yarn","factor":2)")), "8192");
}

TEST(ContextLength, OfOtherStretching) {
  EXPECT_EQ(length(rope(R"("type":"linear","factor":8)")), "32768");
  EXPECT_EQ(length(rope(R"("type":"linear","factor":8)"), Engine::sglang), "32768");
  EXPECT_EQ(length(rope(R"("type":"dynamic","factor":2)")), "8192");
  // Llama 3's length holds its factor, Gemma 3's too; mrope stretches nothing.
  EXPECT_EQ(
      length(rope(R"("rope_type":"llama3","factor":8,"original_max_position_embeddings":512)")),
      "4096");
  EXPECT_EQ(length(rope(R"("rope_type":"llama3","factor":8)"), Engine::sglang), "4096");
  EXPECT_EQ(length(R"(,"model_type":"gemma3_text")" + rope(R"("rope_type":"linear","factor":8)")),
            "4096");
  EXPECT_EQ(length(rope(R"("type":"mrope","factor":2)")), "4096");
  EXPECT_EQ(length(R"(,"rope_parameters":{"full_attention":{"rope_type":"yarn","factor":8,)"
                   R"("original_max_position_embeddings":8192},)"
                   R"("sliding_attention":{"rope_type":"default"}})"),
            "65536");
}

// Phi 3: vLLM takes the short form unless the long one is asked for.
TEST(ContextLength, OfLongRope) {
  const std::string phi = rope(R"("type":"longrope","short_factor":[1.0])") +
                          R"(,"original_max_position_embeddings":4096)"
                          R"(,"max_position_embeddings":131072)";
  EXPECT_EQ(length(phi), "4096/131072");
  EXPECT_EQ(length(phi, Engine::sglang), "131072");
  ServeQuestion question;
  question.type = *cache_type(Engine::vllm, "auto");
  question.context = 131072;
  const ServedModel served = parsed(config(phi));
  const auto& knowledge = knowledge::Knowledge::builtin();
  EXPECT_TRUE(serve_answer(served, {}, question, knowledge, "phi"));
  question.context = 131073;
  EXPECT_FALSE(serve_answer(served, {}, question, knowledge, "phi"));
  question.context.reset();
  EXPECT_EQ(serve_answer(served, {}, question, knowledge, "phi")->context, 4096u);
}

TEST(ContextLength, OfSeveralNames) {
  EXPECT_EQ(length(R"(,"seq_length":2048)"), "2048");
  EXPECT_EQ(length(R"(,"seq_length":8192)"), "4096");
  EXPECT_EQ(length(R"(,"model_max_length":131072)"), "131072");
  EXPECT_EQ(length(R"(,"max_position_embeddings":0)"), "0");
  // A hostile factor ends at a bound.
  EXPECT_EQ(length(rope(R"("type":"linear","factor":1e300)")), "4096000000");
}

}  // namespace context_length_test
}  // namespace cufit::fit
