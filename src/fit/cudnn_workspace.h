// SPDX-License-Identifier: Apache-2.0
// The workspace of a convolution from what cuDNN said of it without a GPU. Used by workspaces.cc.
#pragma once

#include "fit/conv_workspace.h"

namespace cufit::fit {

// Bytes. The upper value is above all of 109,773 workspaces that random convolutions of 1 x 1 and their
// gradients took on an H100 (data/conv_choice.toml); of 4,248 convolutions of networks
// (data/workspaces.toml, conv_tile) three gradients of 3 x 3 weights in fp32 took more.
SizeAt cudnn_workspace(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                       const LibrarySetup& setup, const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
