// SPDX-License-Identifier: Apache-2.0
// What a model is, by the names and shapes of its tensors and its config.json: which class of which
// library builds it, and in what its weights are written. Nothing of its weights is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "formats/model/model_config.h"
#include "formats/model/safetensors.h"

namespace cufit::fit {

enum class ModelLibrary : uint8_t { transformers, diffusers };

struct ModelKind {
  ModelLibrary library = ModelLibrary::transformers;
  std::string architecture;   // "LlamaForCausalLM", "UNet2DConditionModel"
  std::string layout;         // "sd1", "sd2", "sdxl", "flux": built without a config; else empty
  std::string dtype;          // "bf16", "fp16", "fp32"; empty: nothing says it
  std::string quantisation;   // "gptq", "fp8" ..; empty: none
  uint64_t parameters = 0;    // in the files, of what is trained; 0: not known
  uint64_t beside_bytes = 0;  // of the files, that is not trained: VAE, text encoders
  uint64_t channels = 4;      // of a UNet's input
  uint64_t blocks = 0, single_blocks = 0;  // of Flux
  bool guidance = false;                   // of Flux
};

// Why a file is not a model that can be built; "": it is one, or only a config.json can say.
// "lora" (an adapter), "refiner", "sd3": known, but not built from one file.
std::string not_a_model(std::span<const formats::Tensor> tensors);

// A checkpoint in one file by its tensors' names: Stable Diffusion 1, 2 and XL, Flux.
// `architecture` is empty where it is none of these.
ModelKind kind_of_tensors(std::span<const formats::Tensor> tensors);

// By config.json, with what its tensors add; they may be none.
ModelKind kind_of_config(const formats::ModelConfig& config,
                         std::span<const formats::Tensor> tensors);

// "bf16" of "bfloat16", "torch.float16", "BF16"; empty for others.
std::string short_dtype(const std::string& name);

}  // namespace cufit::fit
