// SPDX-License-Identifier: Apache-2.0
// Questions of serving for tests: a model by its config, a card, the answer for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "fit/serve/serve_answer.h"

namespace cufit::fit::serve_fixture {

inline ServedModel parsed(const std::string& config, const std::string& name = "c") {
  const auto read = formats::parse_decoder_config(config, name);
  EXPECT_TRUE(read) << name;
  auto out = served_model(*read, name);
  EXPECT_TRUE(out) << out.error().what;
  return *out;
}

// Of tests/fit/serve/configs.
inline ServedModel model(const std::string& name) {
  std::ifstream in(CUFIT_SOURCE_DIR "/tests/fit/serve/configs/" + name + ".json");
  std::stringstream text;
  text << in.rdbuf();
  return parsed(text.str(), name);
}

// A config with these members in addition; a later one of the same name counts.
inline std::string config(const std::string& more) {
  return R"({"model_type":"llama","hidden_size":768,"intermediate_size":1536,"num_hidden_layers":2,)"
         R"("num_attention_heads":12,"num_key_value_heads":4,"head_dim":64,"vocab_size":1000,)"
         R"("max_position_embeddings":4096)" +
         more + "}";
}

inline Card card(const std::string& name) {
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
  uint64_t layer = 0, output = 0;
  const char* type = "auto";
};

inline ServeCard answer(const ServedModel& served, const Card& card, const Ask& ask) {
  ServedWeights weights;
  if (ask.weights != 0) {
    weights.bytes = weights.gpu_bytes = ask.weights;
    weights.layer_bytes = ask.layer;
    weights.output_bytes = ask.output;
  } else {
    weights = *served_weights(served, {}, ask.engine, ask.tp, "m");
  }
  const ServeQuestion question{
      ask.engine, ask.tp, ask.context, ask.sequences, *cache_type(ask.engine, ask.type), {card}};
  const auto got = serve_answer(served, weights, question, knowledge::Knowledge::builtin(), "m");
  EXPECT_TRUE(got) << got.error().what;
  return got->cards.front();
}
inline ServeCard answer(const std::string& name, const Card& card, const Ask& ask) {
  return answer(model(name), card, ask);
}

inline std::string option(const ServeCard& card, const std::string& name) {
  const auto at = std::find(card.flags.begin(), card.flags.end(), name);
  return at == card.flags.end() || at + 1 == card.flags.end() ? "" : *(at + 1);
}
inline bool has(const ServeCard& card, const std::string& word) {
  return std::count(card.flags.begin(), card.flags.end(), word) != 0;
}

}  // namespace cufit::fit::serve_fixture
