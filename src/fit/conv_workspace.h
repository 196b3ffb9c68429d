// SPDX-License-Identifier: Apache-2.0
// What cuDNN asks for to run one convolution or recurrent layer. Used by workspaces.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fit/workspaces.h"

namespace cufit::fit {

enum class ConvPass : uint8_t { forward, data_gradient, weight_gradient };

// The numbers of a call of `conv`, `conv_dgrad` or `conv_wgrad`.
struct ConvShape {
  uint64_t bits = 0, batch = 0, channels = 0, outputs = 0, groups = 0;
  bool transposed = false, channels_last = false, pointwise = false;
  uint64_t in_pixels = 0, out_pixels = 0, kernel_pixels = 0;
};

// nullopt: not the numbers of a convolution, or beyond what any machine has.
std::optional<ConvShape> conv_shape(std::span<const uint64_t> numbers);

SizeAt conv_workspace(const ConvShape& shape, ConvPass pass, const LibrarySetup& setup,
                      const knowledge::Knowledge& knowledge);

// The numbers of a call of `rnn`: bits, mode, layers, directions, hidden size, elements of the
// input, length, batch, bytes of the weights. {0, 0}: not those, or beyond what any machine has.
SizeAt rnn_workspace(std::span<const uint64_t> numbers, const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
