// SPDX-License-Identifier: Apache-2.0
// What one layer of a decoder keeps of a sequence, by its config. Where a config does not say which
// layer is what, the rule is that of the model's own code in transformers.
#pragma once

#include "fit/serve/served_model.h"

namespace cufit::fit {

// None for a layer that keeps nothing or uses another's cache, two for one with attention beside a
// recurrent part. Error{unsupported} for a kind of layer that is not known.
Result<std::vector<CacheLayer>> layer_caches(const formats::DecoderConfig& config, uint64_t layer,
                                             const std::string& name);

}  // namespace cufit::fit
