// SPDX-License-Identifier: Apache-2.0
// The files of a model that is served: safetensors with their config.json, or GGUF in one file or
// several parts. Engines open a folder of safetensors, whichever of its files was named.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/model/decoder_config.h"
#include "formats/model/safetensors.h"
#include "host/files/host.h"

namespace cufit::commands {

struct ServedFiles {
  formats::DecoderConfig config;
  std::vector<formats::Tensor> tensors;  // none: there is a config.json alone
  std::string config_name;               // of the file that says what the model is
  std::string served;                    // what the engine opens: a folder, the first part of GGUF
  uint64_t missing_bytes = 0;
  bool gguf = false;
};

Result<ServedFiles> read_served_files(const host::Host& files, const std::string& path);

}  // namespace cufit::commands
