// SPDX-License-Identifier: Apache-2.0
// The workspace of a convolution from what cuDNN said of it without a GPU. Used by workspaces.cc.
#pragma once

#include "fit/conv_workspace.h"

namespace cufit::fit {

// Bytes. The upper value is above all but 3 of 12,384 workspaces of convolutions and gradients on an
// H100 for which cuDNN had an answer (data/workspaces.toml, conv_tile): three gradients of 3x3 weights
// in fp32.
SizeAt cudnn_workspace(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                       const LibrarySetup& setup, const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
