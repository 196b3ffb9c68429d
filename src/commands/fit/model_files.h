// SPDX-License-Identifier: Apache-2.0
// A model as it lies on the disk: headers of its weights and its config.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/model/model_config.h"
#include "formats/model/safetensors.h"
#include "host/files/host.h"

namespace cufit::commands {

struct ModelFiles {
  std::vector<formats::Tensor> tensors;
  std::optional<formats::ModelConfig> config;
  std::string config_text;  // of config.json
  std::string config_path;
  uint64_t missing_bytes = 0;
  bool weights = false;
  std::vector<std::string> names;  // of the files of weights, within their folder
};

// `path`: a .safetensors file, or a folder.
Result<ModelFiles> read_model_files(const host::Host& files, const std::string& path);

}  // namespace cufit::commands
