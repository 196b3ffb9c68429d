// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/context_length.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::fit {
namespace {

constexpr double k_longest = 4294967296;  // what a config may say is no more

uint64_t stretched(uint64_t length, double factor) {
  return static_cast<uint64_t>(
      std::min(static_cast<double>(length) * (factor > 0 ? factor : 1), k_longest));
}

// Of 0.5: a factor beside the length that it starts from has been worked in.
ContextLength of_sglang(const formats::DecoderConfig& config) {
  const bool worked_in = config.rope_original != 0 || config.rope_type == "llama3";
  const uint64_t length = stretched(config.max_length, worked_in ? 1 : config.rope_factor);
  return {length, length};
}

}  // namespace

// vLLM: of YaRN the length that it starts from counts, so `max_position_embeddings` may stand before
// or after; the long form of Phi 3 is taken where it is asked for; Gemma 3 says it stretched.
ContextLength context_length(const formats::DecoderConfig& config, Engine engine) {
  if (config.max_length == 0 || engine == Engine::llama_cpp)
    return {config.max_length, config.max_length};
  if (engine == Engine::sglang) return of_sglang(config);
  const std::string& type = config.rope_type;
  const bool long_rope = type == "longrope" || type == "su";
  ContextLength out{config.max_length, config.max_length};
  if (!long_rope && type != "llama3" && !contains(config.model_type, "gemma3")) {
    const bool yarn = type == "yarn" && config.rope_original != 0;
    out.most = stretched(yarn ? config.rope_original : config.max_length, config.rope_factor);
    out.usual = out.most;
  }
  if (long_rope && engine == Engine::vllm && config.original_length != 0)
    out.usual = config.original_length;
  return out;
}

}  // namespace cufit::fit
