// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/reduction_workspace.h"

#include <algorithm>

namespace cufit::fit {
namespace {

// aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig: how one reduction is laid over the GPU.
constexpr uint64_t k_most_threads = 512;  // of a block, for one output a thread
constexpr uint64_t k_warp = 32;
constexpr uint64_t k_threads_per_multiprocessor = 2048;
constexpr uint64_t k_least_values = 16;  // per thread, worth another block
constexpr uint64_t k_most_values = 256;
constexpr uint64_t k_sum_bytes = 4;  // fp32, also of 16-bit types
constexpr uint64_t k_reduction_workspace_most_bytes = 16;
constexpr uint64_t k_reduction_workspace_most = uint64_t{1} << 40;

uint64_t last_power_of_two(uint64_t value) {
  uint64_t out = 1;
  while (out <= value / 2) out *= 2;
  return out;
}

uint64_t div_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace

SizeAt reduction_workspace(std::span<const uint64_t> numbers, uint64_t multiprocessors) {
  if (numbers.size() < 2 || numbers.size() > 3 || numbers[0] > k_reduction_workspace_most ||
      numbers[1] > k_reduction_workspace_most)
    return {};
  const uint64_t rows = numbers[0], columns = numbers[1];
  const uint64_t each = numbers.size() == 3 ? numbers[2] : k_sum_bytes;
  if (rows == 0 || columns == 0 || rows > k_reduction_workspace_most / columns ||
      each > k_reduction_workspace_most_bytes)
    return {};
  uint64_t vector = 4;  // outputs of one thread
  while (columns % vector != 0) vector /= 2;
  const uint64_t outputs = columns / vector, most = k_most_threads / vector;
  const uint64_t x = std::min(last_power_of_two(outputs), most);
  const uint64_t y = std::min(last_power_of_two(rows), most);
  uint64_t width = std::min(x, k_warp);
  const uint64_t height = std::min(y, most / width);
  width = std::min(x, most / height);
  // A block's threads share a column where each then still has enough rows.
  if (rows < height * k_least_values && rows < k_most_values) return {};
  const uint64_t values = div_up(rows, height);
  const uint64_t grid = div_up(outputs, width);
  const uint64_t wanted =
      multiprocessors * (k_threads_per_multiprocessor / std::max<uint64_t>(width * height, 1));
  if (values < k_most_values || grid > wanted) return {};
  const uint64_t blocks = std::max(std::min(div_up(wanted, grid), div_up(values, k_least_values)),
                                   div_up(values, k_most_values));
  if (blocks <= 1) return {};
  const uint64_t bytes = each * columns * blocks * width * vector;
  return {bytes, bytes};
}

}  // namespace cufit::fit
