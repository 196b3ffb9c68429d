// SPDX-License-Identifier: Apache-2.0
// Which engine runs a convolution with kernel and stride 1. Used by cudnn_workspace.cc.
#pragma once

#include <cstdint>

#include "fit/conv_workspace.h"

namespace cufit::fit {

enum class ConvChoice : uint8_t {
  cublas,   // one product
  samples,  // a product per sample of the batch, whose results are then summed
  own,      // one of cuDNN's own
};

// By data/conv_choice.toml; `own` where it has no answer.
ConvChoice conv_choice(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                       const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
