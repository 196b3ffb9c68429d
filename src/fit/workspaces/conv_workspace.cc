// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/conv_workspace.h"

#include <algorithm>
#include <string_view>

namespace cufit::fit {
namespace {

constexpr size_t k_header = 8;  // numbers before those of the dimensions
constexpr uint64_t k_conv_workspace_most = uint64_t{1} << 48;  // bytes of one tensor
constexpr ComputeCapability k_first_with_tf32{8, 0};

// The product, or nullopt beyond k_most.
std::optional<uint64_t> product(std::span<const uint64_t> numbers) {
  uint64_t out = 1;
  for (const uint64_t number : numbers) {
    if (number != 0 && out > k_conv_workspace_most / number) return std::nullopt;
    out *= number;
  }
  return out;
}

bool all_one(std::span<const uint64_t> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](uint64_t number) { return number == 1; });
}

std::string_view kind_of(const ConvShape& shape, ConvPass pass, const LibrarySetup& setup) {
  const bool has_tensor_cores =
      shape.bits == 16 || (shape.bits == 32 && setup.cc >= k_first_with_tf32);
  const bool of_weights = pass == ConvPass::weight_gradient;
  if (is_depthwise(shape))
    return shape.channels_last && of_weights ? "nhwc_depthwise_wgrad" : "depthwise";
  if (!has_tensor_cores) return "other";
  if (shape.groups > 1 && !shape.channels_last) return of_weights ? "grouped_wgrad" : "grouped";
  if (shape.channels_last) return shape.groups > 1 ? "nhwc_grouped" : "nhwc";
  if (!shape.pointwise) return of_weights ? "nchw_wgrad" : "nchw";
  if (shape.in_pixels % 4 != 0) return "nchw_pointwise_odd";
  return of_weights ? "nchw_pointwise_wgrad" : "nchw_pointwise";
}

}  // namespace

std::optional<ConvShape> conv_shape(std::span<const uint64_t> numbers) {
  if (numbers.size() < k_header) return std::nullopt;
  const uint64_t dimensions = numbers[7];
  if (dimensions == 0 || dimensions > 3 || numbers.size() != k_header + 6 * dimensions)
    return std::nullopt;
  const size_t d = static_cast<size_t>(dimensions);
  const auto part = [&](size_t i) { return numbers.subspan(k_header + i * d, d); };
  ConvShape out{numbers[0], numbers[1],      numbers[2],     numbers[3],
                numbers[4], numbers[5] != 0, numbers[6] != 0};
  const auto in = product(part(0)), to = product(part(1)), kernel = product(part(2));
  if (!in || !to || !kernel || out.groups == 0 || out.bits > 64) return std::nullopt;
  out.in_pixels = *in;
  out.out_pixels = *to;
  out.kernel_pixels = *kernel;
  out.pointwise = *kernel == 1 && all_one(part(3));
  out.of_volumes = dimensions == 3;
  if (d == 2 && part(2)[0] == 3 && part(2)[1] == 3 && all_one(part(3)) && all_one(part(5)))
    out.winograd_tiles = (part(1)[0] + 3) / 4 * ((part(1)[1] + 3) / 4);
  // Each tensor alone within bounds: no sum or product of a few of them overflows.
  const uint64_t input[] = {out.batch, out.channels, *in, out.bits};
  const uint64_t output[] = {out.batch, out.outputs, *to, out.bits};
  const uint64_t weights[] = {out.channels, out.outputs, *kernel, out.bits};
  if (!product(input) || !product(output) || !product(weights)) return std::nullopt;
  return out;
}

bool is_depthwise(const ConvShape& shape) {
  return shape.groups > 1 && shape.groups == shape.channels;
}

uint64_t depthwise_sums(const ConvShape& shape) {
  const uint64_t sums[] = {shape.batch, 8, (shape.channels + 31) / 32 * 32, shape.kernel_pixels, 4};
  return product(sums).value_or(k_conv_workspace_most);
}

uint64_t bytes_of_input_and_output(const ConvShape& shape) {
  return shape.batch * (shape.bits / 8) *
         (shape.channels * shape.in_pixels + shape.outputs * shape.out_pixels);
}

uint64_t bytes_of_weights(const ConvShape& shape) {
  return shape.channels * shape.outputs / shape.groups * shape.kernel_pixels * (shape.bits / 8);
}

SizeAt conv_workspace(const ConvShape& shape, ConvPass pass, const LibrarySetup& setup,
                      const knowledge::Knowledge& knowledge) {
  const std::string_view kind = kind_of(shape, pass, setup);
  const auto row = std::find_if(
      knowledge.conv_workspaces.begin(), knowledge.conv_workspaces.end(),
      [kind](const knowledge::ConvWorkspaceRow& candidate) { return candidate.kind == kind; });
  if (row == knowledge.conv_workspaces.end()) return {};
  const uint64_t io = bytes_of_input_and_output(shape);
  const uint64_t weights = bytes_of_weights(shape);
  const auto times = [](int64_t factor, uint64_t value) {
    return static_cast<uint64_t>(factor) * value;
  };
  SizeAt out;
  out.point = times(row->io, io) + times(row->weights, weights) + times(row->fixed, 1);
  // Only convolutions of a batch ask for it: an empty one runs nothing.
  if (io == 0) return {};
  if (pass == ConvPass::weight_gradient) {
    out.point += std::min(times(row->split_weights, weights), times(row->split_most, 1));
    if (row->per_sample != 0) {
      // weights and batch are each below 2^48, their product may not be.
      const uint64_t most = io + 4 * weights;
      const bool fits = weights == 0 || shape.batch <= most / weights;
      out.point += fits ? std::min(shape.batch * weights, most) : most;
    }
  }
  if (kind == "nhwc_depthwise_wgrad") out.point = depthwise_sums(shape);
  out.upper =
      times(row->upper_io, io) + times(row->upper_weights, weights) + times(row->upper_fixed, 1);
  out.upper = std::max(out.upper, out.point);
  return out;
}

}  // namespace cufit::fit
