// SPDX-License-Identifier: Apache-2.0
#include "explain/encoder_product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "explain/encoder_kernels.h"

namespace cufit::explain {
namespace {

constexpr size_t k_tile = EncoderKernels::k_tile;
constexpr size_t k_at_a_time = 32;  // tiles that a thread takes
// What a weight is at most, and the numbers that it is multiplied with: as large as leaves the sum
// of a row below 2^31.
constexpr double k_most_weight = 127 * 8, k_most_number = 4095, k_most_sum = 2147483647.0;

struct Whole {
  std::vector<int16_t> numbers;  // [row][column], a row more where their count is odd
  std::vector<float> scale;      // a row
};

Whole to_whole(const float* in, size_t rows, size_t columns) {
  const EncoderKernels& kernels = encoder_kernels();
  const auto most = static_cast<float>(std::min(
      k_most_number, std::floor(k_most_sum / (k_most_weight * static_cast<double>(columns)))));
  Whole out;
  out.numbers.resize((rows + rows % 2) * columns);
  out.scale.resize(rows + rows % 2);
  for (size_t row = 0; row < rows; ++row) {
    const float largest = kernels.largest(in + row * columns, columns);
    if (!(largest > 0)) continue;
    out.scale[row] = largest / most;
    kernels.to_whole(in + row * columns, columns, most / largest,
                     out.numbers.data() + row * columns);
  }
  return out;
}

}  // namespace

void multiply(const Matrix& matrix, const float* in, size_t rows, float* out, size_t threads) {
  const EncoderKernels& kernels = encoder_kernels();
  const size_t columns = matrix.columns, groups = columns / EncoderKernels::k_group;
  const Whole numbers = to_whole(in, rows, columns);
  const size_t tiles = matrix.rows / k_tile;
  in_parallel((tiles + k_at_a_time - 1) / k_at_a_time, threads, [&](size_t part) {
    std::vector<int16_t> weights(k_tile * columns);
    for (size_t t = part * k_at_a_time; t < std::min(tiles, (part + 1) * k_at_a_time); ++t) {
      const size_t first = t * k_tile;
      for (size_t i = 0; i < k_tile; ++i) {
        kernels.unpack(matrix.times.data() + (first + i) * groups,
                       matrix.fours.data() + (first + i) * columns / 2, groups,
                       weights.data() + i * columns);
      }
      for (size_t row = 0; row < rows; row += 2) {
        const int16_t* pair = numbers.numbers.data() + row * columns;
        int32_t sums[2 * k_tile];
        kernels.tile(weights.data(), pair, pair + columns, columns, sums);
        for (size_t k = 0; k < 2 && row + k < rows; ++k) {
          float* to = out + (row + k) * matrix.rows + first;
          const float scale = numbers.scale[row + k];
          for (size_t i = 0; i < k_tile; ++i) {
            to[i] = static_cast<float>(sums[k * k_tile + i]) * scale * matrix.scale[first + i] +
                    matrix.bias[first + i];
          }
        }
      }
    }
  });
}

const EncoderKernels& encoder_kernels() {
#if defined(__x86_64__)
  static const bool wider = __builtin_cpu_supports("avx512vnni") &&
                            __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512vl");
  if (wider) return avx512::k_kernels;
  static const bool wide = __builtin_cpu_supports("avx2");
  if (wide) return avx2::k_kernels;
#endif
  return plain::k_kernels;
}

}  // namespace cufit::explain
