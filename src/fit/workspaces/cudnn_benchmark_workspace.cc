// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/cudnn_benchmark_workspace.h"

#include <algorithm>

#include "fit/workspaces/conv_workspace.h"

namespace cufit::fit {
namespace {

constexpr size_t k_cudnn_benchmark_workspace_numbers =
    20;  // of a convolution of pictures; its dimensions begin at the ninth
constexpr uint64_t k_least_side = 16, k_most_side = 256;  // of a transform
constexpr uint64_t k_most_groups = 8;
// Of a kernel, pictures and maps: with kernels of 96 and 128 and 64 or 128 of each it was chosen,
// with kernels of up to 80 or 32 of each another one.
constexpr uint64_t k_large_kernel = 96, k_many = 64;
constexpr uint64_t k_complex_bytes = 8;
// Of the transforms of all pictures: some are done behind others.
constexpr double k_at_once = 0.7, k_at_once_upper = 1.3;
constexpr uint64_t k_cudnn_benchmark_workspace_most_bytes = uint64_t{1} << 48;

double bytes_of(double weights, double pictures, double share, double each) {
  return std::min((weights + share * pictures) * each,
                  static_cast<double>(k_cudnn_benchmark_workspace_most_bytes));
}

}  // namespace

bool has_no_other_engine(std::span<const uint64_t> numbers) {
  if (numbers.size() != k_cudnn_benchmark_workspace_numbers ||
      tried_workspace(numbers, ConvPass::data_gradient).point == 0)
    return false;
  const std::optional<ConvShape> shape = conv_shape(numbers);
  return shape && shape->groups == 1 && shape->batch >= k_many && shape->outputs >= k_many &&
         numbers[12] >= k_large_kernel && numbers[13] >= k_large_kernel;
}

// By Fourier transforms in fp32, of each pair of channels' weights and of each picture, as large as
// a padded picture, in powers of two. Of 520 random convolutions that were tried
// on an H200 (cuDNN 9.19), the greatest block of 152 forward passes in fp32 without stride comes
// out at 0.97 to 1.24 times its size for half of them, 0.91 for one in twenty; the others' greatest
// block cuDNN names without a GPU.
SizeAt tried_workspace(std::span<const uint64_t> numbers, ConvPass pass) {
  const std::optional<ConvShape> shape = conv_shape(numbers);
  if (!shape || numbers.size() != k_cudnn_benchmark_workspace_numbers || shape->bits != 32 ||
      shape->transposed)
    return {};
  if (shape->groups > k_most_groups || is_depthwise(*shape)) return {};
  const auto in = numbers.subspan(8, 2), kernel = numbers.subspan(12, 2);
  const auto stride = numbers.subspan(14, 2), dilation = numbers.subspan(18, 2);
  for (size_t i = 0; i < 2; ++i)
    if (stride[i] != 1 || dilation[i] != 1 || kernel[i] == 0 || kernel[i] > k_most_side) return {};
  const auto padding = numbers.subspan(16, 2);
  for (const uint64_t side : padding)
    if (side > k_most_side) return {};
  const uint64_t needed = std::max(in[0] + 2 * padding[0], in[1] + 2 * padding[1]);
  uint64_t side = k_least_side;
  while (side < needed && side < k_most_side) side *= 2;
  if (side < needed) return {};
  const double each = static_cast<double>(side * (side + 1) * k_complex_bytes);
  const double weights = static_cast<double>(shape->channels) *
                         static_cast<double>(shape->outputs) / static_cast<double>(shape->groups);
  const double pictures =
      static_cast<double>(shape->batch) * static_cast<double>(shape->channels + shape->outputs);
  // Of small pictures: 14 of 17 measured are this to 3 %, the others less.
  if (pass == ConvPass::weight_gradient && side == k_least_side && kernel[0] > 1) {
    const auto both = static_cast<uint64_t>(bytes_of(2 * weights, 2 * pictures, 1, each));
    return {both, both + both / 16};
  }
  // Nearly all at once where a kernel is as large as a picture.
  const bool large = kernel[0] >= k_large_kernel && kernel[1] >= k_large_kernel;
  return {static_cast<uint64_t>(bytes_of(weights, pictures, large ? 1 : k_at_once, each)),
          static_cast<uint64_t>(bytes_of(weights, pictures, k_at_once_upper, each))};
}

}  // namespace cufit::fit
