// SPDX-License-Identifier: Apache-2.0
// What cuDNN asks for to run one convolution. Used by workspaces.cc.
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

}  // namespace cufit::fit
