// SPDX-License-Identifier: Apache-2.0
// How the size of a recorded storage follows the batch size, as far as one recording tells.
#pragma once

#include <cstdint>

namespace cufit::formats {

enum class BatchGrowth : uint8_t {
  fixed,  // holds nothing of a batch: weights, gradients, the optimizer's, made before any step
  stays,  // not proved: its size is no multiple of the batch size, or is that of a weight, or it
          // lives on over steps; taken as fixed
  grows,  // not proved: a multiple of the batch size that comes and goes within a step; taken as in
          // proportion to it
};

}  // namespace cufit::formats
