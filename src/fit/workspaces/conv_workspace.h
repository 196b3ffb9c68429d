// SPDX-License-Identifier: Apache-2.0
// What cuDNN asks for to run one convolution. Used by workspaces.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fit/workspaces/cudnn_answers.h"
#include "fit/workspaces/workspaces.h"

namespace cufit::fit {

// The numbers of a call of `conv`, `conv_dgrad` or `conv_wgrad`.
struct ConvShape {
  uint64_t bits = 0, batch = 0, channels = 0, outputs = 0, groups = 0;
  bool transposed = false, channels_last = false, pointwise = false, of_volumes = false;
  uint64_t in_pixels = 0, out_pixels = 0, kernel_pixels = 0;
  // 4 x 4 pixels of one result of a convolution of 3 x 3 with stride and dilation 1; 0: another.
  uint64_t winograd_tiles = 0;
};

// nullopt: not the numbers of a convolution, or beyond what any machine has.
std::optional<ConvShape> conv_shape(std::span<const uint64_t> numbers);

// PyTorch runs most convolutions of one channel per group with kernels of its own.
bool is_depthwise(const ConvShape& shape);
// Channels last, 16 bit, gradient of the weights: in 8 parts per sample, in fp32 and for 32
// channels at a time. 69 of 75 measured, to the byte.
uint64_t depthwise_sums(const ConvShape& shape);
uint64_t bytes_of_input_and_output(const ConvShape& shape);
uint64_t bytes_of_weights(const ConvShape& shape);

// By the rows of data/workspaces.toml, where cuDNN was not asked.
SizeAt conv_workspace(const ConvShape& shape, ConvPass pass, const LibrarySetup& setup,
                      const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
