// SPDX-License-Identifier: Apache-2.0
// What a model's folder says of itself: config.json of transformers and of diffusers' components,
// model_index.json of a diffusers pipeline, adapter_config.json of peft. Only what decides how a
// model is built and whether it can be trained; the rest is for the library that builds it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct ModelConfig {
  std::string class_name;                  // diffusers: `_class_name`
  std::vector<std::string> architectures;  // transformers
  std::string model_type;
  std::string dtype;         // "bfloat16"; `dtype` or `torch_dtype`, of the whole or its text model
  std::string quantisation;  // "gptq", "awq", "fp8", "bitsandbytes"; empty: none
  std::string base_model;    // of an adapter: `base_model_name_or_path`
  bool adapter = false;      // it has a `peft_type`
  bool own_code = false;     // `auto_map`: the model's class is code of its folder
};
Result<ModelConfig> parse_model_config(std::string_view text, const std::string& name);

// Components of model_index.json with their classes, by name: {"unet", "UNet2DConditionModel"}.
Result<std::vector<std::pair<std::string, std::string>>> parse_model_index(std::string_view text,
                                                                           const std::string& name);

}  // namespace cufit::formats
