// SPDX-License-Identifier: Apache-2.0
// Which engine runs a convolution where cuDNN does not offer it without a GPU. Used by
// cudnn_workspace.cc.
#pragma once

#include <cstdint>

#include "fit/workspaces/conv_workspace.h"

namespace cufit::fit {

enum class ConvChoice : uint8_t {
  cublas,   // one product
  samples,  // a product per sample of the batch, whose results are then summed
  own,      // one of cuDNN's own
  winograd,
  perhaps_winograd,
};

// By data/conv_choice.toml; `own` where it has no answer. Of kernels and strides of 1.
ConvChoice pointwise_choice(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                            const knowledge::Knowledge& knowledge);
// Of gradients of 3 x 3 weights in fp32, channels first.
ConvChoice winograd_choice(const ConvShape& shape, const CudnnAnswer& answer,
                           const knowledge::Knowledge& knowledge);

// Into how many parts cuBLAS divides the sums of a gradient of weights of 1 x 1, channels last.
uint64_t parts_of_sums(const ConvShape& shape, const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
