// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file, and as the config.json of a model that is served: reading ends, sizes
// agree, and an answer can be reckoned from what was read.
#include <cstdlib>

#include "fit/serve/context_length.h"
#include "fit/serve/serve_answer.h"
#include "formats/model/gguf.h"

namespace {

using namespace cufit;

void reckon(const formats::DecoderConfig& config, std::span<const formats::Tensor> tensors,
            fit::Engine engine) {
  const auto model = fit::served_model(config, "fuzz");
  if (!model) return;
  fit::ServeQuestion question;
  question.engine = engine;
  question.tp = 2;
  question.context = 4096;
  const uint64_t usual = fit::context_length(config, engine).usual;
  if (usual != 0 && usual < 4096) question.context = usual;
  question.type = *fit::cache_type(engine, "auto");
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  question.cards = {fit::card_of(*knowledge.find_gpu("L40S"), knowledge)};
  auto weights = fit::served_weights(*model, tensors, engine, question.tp, "fuzz");
  if (!weights) return;
  const auto answer = fit::serve_answer(*model, *weights, question, knowledge, "fuzz");
  if (!answer) return;
  for (const fit::ServeCard& card : answer->cards)
    if (card.fits && card.max_context < *question.context) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto file = formats::read_gguf(MemorySource("fuzz", text))) {
    for (const formats::Tensor& tensor : file->tensors)
      if (tensor.bytes != formats::ggml_bytes(*formats::ggml_type(tensor.dtype), tensor.elements))
        std::abort();
    if (const auto config = formats::decoder_config_of(*file, "fuzz"))
      reckon(*config, file->tensors, fit::Engine::llama_cpp);
  }
  if (const auto config = formats::parse_decoder_config(text, "fuzz"))
    for (const fit::Engine engine :
         {fit::Engine::vllm, fit::Engine::sglang, fit::Engine::transformers})
      reckon(*config, {}, engine);
  return 0;
}
