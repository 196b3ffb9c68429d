// SPDX-License-Identifier: Apache-2.0
// What a model's weights take once an engine has loaded them, on all GPUs and on one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fit/serve/kv_cache.h"
#include "formats/model/safetensors.h"

namespace cufit::fit {

constexpr uint64_t k_vocab_padding = 64;  // rows, of vLLM and sglang

struct ServedWeights {
  uint64_t bytes = 0;         // loaded, each weight once
  uint64_t gpu_bytes = 0;     // on the fullest GPU
  uint64_t host_bytes = 0;    // llama.cpp: the embedding, which stays with the CPU
  uint64_t layer_bytes = 0;   // llama.cpp: of the largest layer
  uint64_t output_bytes = 0;  // llama.cpp: of what follows the layers
  uint64_t left_out = 0;      // in the files, but for speculation only
  uint64_t cast_bytes = 0;    // that the files have more, in fp32
  bool reckoned = false;      // from config.json alone
  std::vector<std::pair<std::string, uint64_t>> types;  // "BF16": bytes in the files, most first
};

// `tensors` of safetensors or of GGUF; none: by the config. Error{unsupported} where it says too
// little for that.
Result<ServedWeights> served_weights(const ServedModel& model,
                                     std::span<const formats::Tensor> tensors, Engine engine,
                                     uint64_t tp, const std::string& name);

// Bytes of a model with these sizes, in the type that its config names. Error{unsupported} for what
// has no closed form here: quantised weights, parts beside the decoder.
Result<uint64_t> reckoned_weight_bytes(const ServedModel& model, const std::string& name);

// Whether a layer's MLP is experts.
bool has_experts(const formats::DecoderConfig& config, uint64_t layer);

}  // namespace cufit::fit
