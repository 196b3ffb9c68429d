// SPDX-License-Identifier: Apache-2.0
// The loops in which the encoder spends its time. encoder_kernels.cc is compiled once for every
// machine and, on x86-64, once more for those with AVX2 and for those with the products of whole
// numbers of AVX-512; all give the same numbers. Counts of floats are multiples of eight.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cufit::explain {

struct EncoderKernels {
  static constexpr size_t k_group = 32;  // columns that share a multiplier
  static constexpr size_t k_tile = 4;    // rows of a matrix at a time
  static constexpr size_t k_wide = 32;   // floats of an attention's row at a time

  // A row of a matrix (see encoder_weights.h) as whole numbers: `groups` * 32 of them.
  void (*unpack)(const uint8_t* times, const uint8_t* fours, size_t groups, int16_t* out);
  // Sums of the products of two rows of numbers, a and b, with four rows of weights: those of a,
  // then those of b. `columns`: a multiple of 32.
  void (*tile)(const int16_t* weights, const int16_t* a, const int16_t* b, size_t columns,
               int32_t* out);
  float (*largest)(const float* values, size_t size);                             // absolute
  void (*to_whole)(const float* values, size_t size, float times, int16_t* out);  // rounded
  void (*gelu)(float* values, size_t size);                                       // in place
  void (*normalize)(float* values, size_t size, const float* scale, const float* shift);
  // Attention of one head for one row: out[size] = the others' values, each by its share, which is
  // softmax(times * query . key), times > 0; `size`: a multiple of 32. `keys`: [size][rows, rounded
  // up to 32]; values begin `stride` apart; `shares`: room for as many as a row of keys.
  void (*attend)(const float* query, const float* keys, const float* values, size_t rows,
                 size_t stride, size_t size, float times, float* shares, float* out);
  void (*add)(float* sum, const float* values, size_t size);  // sum += values
};

// The best that this machine has.
const EncoderKernels& encoder_kernels();

namespace plain {
extern const EncoderKernels k_kernels;
}
namespace avx2 {
extern const EncoderKernels k_kernels;
}
namespace avx512 {
extern const EncoderKernels k_kernels;
}

}  // namespace cufit::explain
