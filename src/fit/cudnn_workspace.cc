// SPDX-License-Identifier: Apache-2.0
#include "fit/cudnn_workspace.h"

#include <algorithm>

#include "fit/conv_choice.h"

namespace cufit::fit {
namespace {

// The constants below: from 4,248 convolutions on an H100 (data/workspaces.toml, conv_tile).
constexpr uint64_t k_wide_vector = 16;
constexpr uint64_t k_cublas_leaves = 400;  // bytes that its engines ask for
// A product per sample takes at most so many times input, output and four times the weights.
constexpr uint64_t k_many_times = 16;
// Of cuBLAS's sums in parts, channels last.
constexpr uint64_t k_parts = 14, k_parts_most = 4u << 20, k_parts_upper = 32;
// A tile of fp32 of 128 x 256 for each multiprocessor, and what stands between.
constexpr uint64_t k_largest_tile = 131072, k_between = 1u << 20;
// Without a GPU cuDNN reckons with 18 multiprocessors: one graphics processing cluster.
constexpr uint64_t k_blocks_without_gpu = 18;
constexpr uint64_t k_most_tiles = 1u << 14, k_most_rounds = 1u << 30;
constexpr uint64_t k_least_rounds = 16;  // that a block sums up, of 128 bytes of a row each

uint64_t divided(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

struct Product {
  uint64_t rows = 0, columns = 0, length = 0;  // of the result; of the sum of one element
};

Product product_of(const ConvShape& shape, ConvPass pass) {
  const uint64_t kernel = shape.kernel_pixels;
  if (pass == ConvPass::weight_gradient)
    return {shape.outputs, shape.channels * kernel, shape.batch * shape.out_pixels};
  // The gradient of a transposed convolution is a convolution.
  if ((pass == ConvPass::forward) != shape.transposed)
    return {shape.batch * shape.out_pixels, shape.outputs, shape.channels * kernel};
  return {shape.batch * shape.in_pixels, shape.channels, shape.outputs * kernel};
}

// Bytes that `blocks` thread blocks leave of `tiles` tiles.
uint64_t partial_sums(uint64_t tiles, uint64_t tile_bytes, uint64_t rounds, uint64_t blocks,
                      bool of_weights) {
  blocks = std::min(blocks, tiles * rounds / k_least_rounds);
  if (tiles == 0 || blocks == 0) return 0;
  if (tiles <= blocks / 2) return tiles * (blocks / tiles) * tile_bytes;
  // A little more tiles than blocks: what is over is divided among all.
  const bool little_more = of_weights && tiles > blocks && tiles * 10 <= blocks * 11;
  return little_more ? blocks * tile_bytes : 0;
}

uint64_t divided_sums(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                      const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  if (!answer.divides || answer.tile == 0 || answer.cluster == 0) return 0;
  const auto tile = std::find_if(
      knowledge.conv_tiles.begin(), knowledge.conv_tiles.end(),
      [&](const knowledge::ConvTileRow& row) { return row.knob == answer.tile - int64_t{1}; });
  const auto cluster = std::find_if(
      knowledge.conv_clusters.begin(), knowledge.conv_clusters.end(),
      [&](const knowledge::ConvClusterRow& row) { return row.blocks == answer.cluster; });
  if (tile == knowledge.conv_tiles.end() || cluster == knowledge.conv_clusters.end()) return 0;
  const Product product = product_of(shape, pass);
  const auto rows = static_cast<uint64_t>(tile->rows),
             columns = static_cast<uint64_t>(tile->columns);
  const uint64_t down = divided(product.rows, rows), across = divided(product.columns, columns);
  // So many tiles are never divided.
  if (down > k_most_tiles || across > k_most_tiles) return 0;
  const uint64_t tiles = down * across;
  const uint64_t rounds = std::min(divided(product.length * (shape.bits / 8), 128), k_most_rounds);
  const uint64_t at_once = static_cast<uint64_t>(cluster->at_once) * setup.multiprocessors / 132;
  const uint64_t known = k_blocks_without_gpu / answer.cluster * answer.cluster;
  const bool of_weights = pass == ConvPass::weight_gradient;
  const uint64_t bytes = rows * columns * 4;
  const uint64_t there = partial_sums(tiles, bytes, rounds, at_once, of_weights);
  const uint64_t here = partial_sums(tiles, bytes, rounds, known, of_weights);
  return there > here ? there - here : 0;
}

// Engines that call cuBLAS stand before cuDNN's own and are not in its answer.
SizeAt pointwise(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                 const knowledge::Knowledge& knowledge) {
  const uint64_t bytes = shape.bits / 8;
  const uint64_t io = bytes_of_input_and_output(shape);
  const uint64_t weights = bytes_of_weights(shape);
  const uint64_t sums = weights / bytes * 4;  // in fp32
  const bool of_weights = pass == ConvPass::weight_gradient;
  if (shape.channels_last) {
    if (!of_weights) return {k_cublas_leaves, answer.upper};
    const bool parts = answer.bytes != 0 && shape.in_pixels * bytes % k_wide_vector == 0;
    return {parts ? std::min(k_parts * sums, k_parts_most) : 0,
            std::max({answer.upper, io, k_parts_upper * sums})};
  }
  const ConvChoice choice = conv_choice(shape, pass, answer, knowledge);
  if (!of_weights)
    return {choice == ConvChoice::own ? answer.bytes : k_cublas_leaves,
            std::max(answer.upper, io + weights)};
  const uint64_t limit = k_many_times * (io + 4 * weights);
  const uint64_t samples =
      shape.batch > limit / std::max<uint64_t>(sums, 1) ? limit : shape.batch * sums;
  uint64_t point = answer.bytes;
  if (choice == ConvChoice::samples) point = samples;
  if (choice == ConvChoice::cublas) point = 0;
  return {point, std::max({answer.upper, samples, io + weights})};
}

}  // namespace

SizeAt cudnn_workspace(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                       const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  if (shape.batch == 0 || shape.bits < 8) return {};
  SizeAt out;
  if (is_depthwise(shape)) {
    out = {answer.bytes, answer.upper};
    // The engine for 16 bit, which is not in the answer.
    if (shape.bits == 16 && pass == ConvPass::weight_gradient) out.point = depthwise_sums(shape);
  } else if (shape.pointwise && shape.groups == 1 && !shape.transposed) {
    out = pointwise(shape, pass, answer, knowledge);
  } else {
    out.point = answer.bytes + divided_sums(shape, pass, answer, setup, knowledge);
    out.upper = answer.upper;
  }
  out.upper += setup.multiprocessors * k_largest_tile + k_between;
  out.upper = std::max(out.upper, out.point);
  return out;
}

}  // namespace cufit::fit
