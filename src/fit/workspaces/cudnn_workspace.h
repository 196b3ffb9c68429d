// SPDX-License-Identifier: Apache-2.0
// The workspace of a convolution from what cuDNN said of it without a GPU. Used by workspaces.cc.
#pragma once

#include "fit/workspaces/conv_workspace.h"

namespace cufit::fit {

// Bytes. Of random convolutions and their gradients on an H100 (tests/gpu/conv_choices.py) the
// upper value is above all 438,039 workspaces of kernels of 1 x 1 of usual sizes, all but 19 of
// 56,193 of any sizes, and all but 971 of 185,600 of other kernels: most of these are of fp32
// weights' gradients, many of a width of 72 or of kernels of 5 x 5 and 7 x 7.
SizeAt cudnn_workspace(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                       const LibrarySetup& setup, const knowledge::Knowledge& knowledge);

// Where it was asked and named no engine; `other`: what such convolutions may take. Of 471 on an
// H200 455 took nothing (430 of them random volumes in 16 bit) and none more than the upper value;
// gradients of weights of pictures in 16 bit are summed in fp32 (4 of 4).
SizeAt unnamed_workspace(const ConvShape& shape, ConvPass pass, const SizeAt& other);

}  // namespace cufit::fit
