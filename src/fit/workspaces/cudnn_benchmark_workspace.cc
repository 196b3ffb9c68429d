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
// Seen with 4,096 pictures; up to 200 of them, of 16 convolutions, the engine that was named ran.
constexpr uint64_t k_thousands = 1024;
constexpr uint32_t k_named_instead = 34;
constexpr uint64_t k_complex_bytes = 8, k_float_bytes = 4;
// Of a picture that is taken apart: its parts overlap by the kernel, and up to this side it is one.
// What takes larger ones works on two at a time.
constexpr uint64_t k_tile = 32, k_most_of_one_tile = 31;
constexpr double k_tried_upper = 1.02;
constexpr double k_cudnn_benchmark_workspace_most_bytes = static_cast<double>(uint64_t{1} << 48);

// Half a spectrum: the other half of a real picture's is the same.
double spectrum_bytes(uint64_t side) {
  return static_cast<double>(side * (side / 2 + 1) * k_complex_bytes);
}

// Of a convolution of pictures, how many there are of each kind, and the side of a transform; side
// 0: none does it.
struct Transforms {
  uint64_t side = 0, padded = 0;
  double weights = 0, inputs = 0, outputs = 0;
  double weight_bytes = 0, output_bytes = 0;
  double regrouped = 0;  // bytes: groups are brought into an order of their own
  bool pointwise = false;
};

Transforms transforms_of(std::span<const uint64_t> numbers) {
  const std::optional<ConvShape> shape = conv_shape(numbers);
  if (!shape || numbers.size() != k_cudnn_benchmark_workspace_numbers || shape->bits != 32 ||
      shape->transposed || shape->groups > k_most_groups || is_depthwise(*shape))
    return {};
  const auto in = numbers.subspan(8, 2), kernel = numbers.subspan(12, 2);
  const auto stride = numbers.subspan(14, 2), padding = numbers.subspan(16, 2);
  const auto dilation = numbers.subspan(18, 2);
  Transforms out;
  for (size_t i = 0; i < 2; ++i) {
    if (stride[i] != 1 || dilation[i] != 1 || kernel[i] == 0 || kernel[i] > k_most_side) return {};
    if (padding[i] > k_most_side || in[i] > k_most_side) return {};
    out.padded = std::max(out.padded, in[i] + 2 * padding[i]);
  }
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  out.side = k_least_side;
  while (out.side < out.padded && out.side < k_most_side) out.side *= 2;
  if (out.side < out.padded) return {};
  out.weights = number(shape->channels) * number(shape->outputs) / number(shape->groups);
  out.inputs = number(shape->batch) * number(shape->channels);
  out.outputs = number(shape->batch) * number(shape->outputs);
  out.weight_bytes = out.weights * number(shape->kernel_pixels * k_float_bytes);
  out.output_bytes = out.outputs * number(shape->out_pixels * k_float_bytes);
  if (shape->groups > 1)
    out.regrouped = out.inputs * number(shape->in_pixels * k_float_bytes) + out.output_bytes;
  out.pointwise = shape->kernel_pixels == 1;
  return out;
}

double tried_bytes(const Transforms& of, ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return 2 * std::max(of.weights + of.inputs, of.outputs) * spectrum_bytes(of.side) +
             of.weight_bytes;
    case ConvPass::weight_gradient:
      return 2 * std::max(of.weights, of.inputs + of.outputs) * spectrum_bytes(of.side) +
             of.output_bytes;
    case ConvPass::data_gradient: break;
  }
  if (of.pointwise) return 0;
  const double at_once = of.padded <= k_most_of_one_tile ? 1 : 2;
  return (of.weights + at_once * (of.inputs + of.outputs)) * spectrum_bytes(k_tile);
}

}  // namespace

bool takes_over(std::span<const uint64_t> numbers, ConvPass pass, const CudnnAnswer& answer) {
  return pass == ConvPass::weight_gradient && answer.engine == k_named_instead &&
         numbers.size() == k_cudnn_benchmark_workspace_numbers && numbers[1] >= k_thousands &&
         transforms_of(numbers).side != 0;
}

bool has_no_other_engine(std::span<const uint64_t> numbers) {
  if (numbers.size() != k_cudnn_benchmark_workspace_numbers ||
      transforms_of(numbers).side == 0)
    return false;
  const std::optional<ConvShape> shape = conv_shape(numbers);
  return shape && shape->groups == 1 && shape->batch >= k_many && shape->outputs >= k_many &&
         numbers[12] >= k_large_kernel && numbers[13] >= k_large_kernel;
}

// By Fourier transforms in fp32, of each pair of channels' weights and of each picture, as large as a
// padded picture, in powers of two; the gradient of pictures takes them apart. 889 random
// convolutions were tried on an H200 (cuDNN 9.19, tests/gpu/tried_blocks.py). Where this engine was
// the one that asked for most, in 644 forward passes, 471 gradients of pictures (of 753 with a
// kernel) and 699 of weights, the block is this to the byte. Most others had less: it was not among
// those that were tried. Of the few that had more cuDNN names the block without a GPU.
SizeAt tried_workspace(std::span<const uint64_t> numbers, ConvPass pass) {
  const Transforms of = transforms_of(numbers);
  if (of.side == 0) return {};
  const double bytes = tried_bytes(of, pass) + of.regrouped;
  const auto within = [](double value) {
    return static_cast<uint64_t>(std::min(value, k_cudnn_benchmark_workspace_most_bytes));
  };
  return {within(bytes), within(k_tried_upper * bytes)};
}

}  // namespace cufit::fit
