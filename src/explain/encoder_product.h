// SPDX-License-Identifier: Apache-2.0
// Products of rows of numbers with a matrix of the encoder. The rows are rounded to whole numbers
// first, so that the sums are the same on every machine.
#pragma once

#include <cstddef>

#include "explain/encoder_weights.h"

namespace cufit::explain {

// out[row][matrix.rows] = in[row][matrix.columns] * matrix + bias, for `rows` rows, on at most
// `threads` threads.
void multiply(const Matrix& matrix, const float* in, size_t rows, float* out, size_t threads);

}  // namespace cufit::explain
