// SPDX-License-Identifier: Apache-2.0
// The tokens of a sequence for which an engine takes a model: what its config says, stretched where
// its positions are.
#pragma once

#include "fit/serve/kv_cache.h"

namespace cufit::fit {

struct ContextLength {
  uint64_t usual = 0;  // where none is asked for; 0: the config does not say it
  uint64_t most = 0;   // that vLLM and sglang take without being overruled
};
ContextLength context_length(const formats::DecoderConfig& config, Engine engine);

}  // namespace cufit::fit
