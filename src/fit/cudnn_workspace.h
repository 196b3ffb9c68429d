// SPDX-License-Identifier: Apache-2.0
// The workspace of a convolution from what cuDNN said of it without a GPU. Used by workspaces.cc.
#pragma once

#include "fit/conv_workspace.h"

namespace cufit::fit {

// Bytes. Measured against 4,248 convolutions and their gradients on an H100 (data/workspaces.toml,
// conv_tile): the upper value is above all but 4 of 12,744.
SizeAt cudnn_workspace(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                       const LibrarySetup& setup, const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
