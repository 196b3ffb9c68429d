// SPDX-License-Identifier: Apache-2.0
// A language model as an engine of inference holds it: what each of its layers keeps of a sequence.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/model/decoder_config.h"

namespace cufit::fit {

enum class CacheKind : uint8_t {
  full,    // keys and values of every token
  window,  // of the last `window` tokens
  chunk,   // of the tokens of a chunk of `window`
  latent,  // one compressed vector per token (DeepSeek)
  state    // of fixed size per sequence: Mamba, linear attention, short convolutions
};

struct CacheLayer {
  CacheKind kind = CacheKind::full;
  // latent: 1, the vector's length, 0; state: kv_heads are Mamba's groups.
  uint64_t kv_heads = 0, key_dim = 0, value_dim = 0;
  uint64_t window = 0;
  uint64_t index_bytes = 0;  // of a token beside the latent vector, whatever the cache's type is
  uint64_t conv_elements = 0, state_elements = 0;  // of a sequence
  uint64_t replicated_conv = 0;  // of conv_elements, what tensor parallelism may have to repeat
  uint64_t state_element_bytes = 2;
  bool operator==(const CacheLayer&) const = default;
};

struct ServedModel {
  formats::DecoderConfig config;
  std::vector<CacheLayer> cache;  // of the layers that keep something of their own
  // "report.serve.warning.<id>" and its detail.
  std::vector<std::pair<std::string, std::string>> assumed;
};

// Error{unsupported} for what is no decoder or has layers that are not known here, Error{malformed}
// where the config contradicts itself. `name`: of the file, for messages.
Result<ServedModel> served_model(formats::DecoderConfig config, const std::string& name);

}  // namespace cufit::fit
