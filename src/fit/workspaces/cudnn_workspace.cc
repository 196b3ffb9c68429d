// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/cudnn_workspace.h"

#include <algorithm>

#include "fit/workspaces/conv_choice.h"

namespace cufit::fit {
namespace {

// The numbers below come from random convolutions on an H100 and an H200
// (tests/gpu/conv_choices.py), those of divided sums from the 39,887 of data/workspaces.toml.
constexpr uint64_t k_cublas_leaves = 400;  // bytes that its engines ask for
// Before this engine stands one with a product per sample where volumes are of fp32, not where they
// are of 16 bit: 18 of 19 of random ones. Other engines run themselves, 8 of 13.
constexpr uint32_t k_engine_after_samples = 40;
// A product per sample takes at most so many times input, output and four times the weights.
constexpr uint64_t k_many_times = 16;
// Of cuBLAS's sums in parts, channels last: what stands before them, and of the upper value.
constexpr uint64_t k_before_parts = 272, k_parts_upper = 32;
// A tile of fp32 of 128 x 256 for each multiprocessor, and what stands between.
constexpr uint64_t k_largest_tile = 131072, k_between = 1u << 20;
// Of cuBLAS's parts no more than so many such tiles were seen on each multiprocessor.
constexpr uint64_t k_turns = 5, k_turns_fp32 = 3;
// Without a GPU cuDNN reckons with 18 multiprocessors: one graphics processing cluster.
constexpr uint64_t k_blocks_without_gpu = 18;
constexpr uint64_t k_most_tiles = 1u << 20, k_most_rounds = 1u << 30;
constexpr uint64_t k_round_bytes = 128;  // of a row that a block multiplies at once
constexpr double k_cudnn_workspace_most_bytes = 1ull << 48;
// Engines of convolutions of few channels, channels first, in 16 bit, and of depthwise ones.
constexpr uint32_t k_engine_of_few_channels = 63, k_engine_of_one_channel = 47;
constexpr uint32_t k_engine_of_depthwise_data = 40;
constexpr uint64_t k_padded_to = 4, k_pads_to = 8, k_parts_of_few = 128, k_weights_at_once = 256;
constexpr uint64_t k_wide = 25;                   // pixels of a kernel
constexpr uint64_t k_winograd_bytes = 6 * 6 * 4;  // of 4 x 4 results, before they are put together

uint64_t divided(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// The product that a convolution is to a GPU, in tiles: as many as `down` times `across`, and so
// many rounds for the sums of each. Channels are padded for each pixel of the kernel by itself.
struct Tiling {
  uint64_t down = 0, across = 0, rounds = 0;
};

Tiling tiling_of(const ConvShape& shape, ConvPass pass, uint64_t rows, uint64_t columns) {
  const uint64_t bytes = shape.bits / 8, kernel = shape.kernel_pixels;
  const uint64_t channels = shape.channels / shape.groups, outputs = shape.outputs / shape.groups;
  if (pass == ConvPass::weight_gradient) {
    const uint64_t down = shape.transposed ? channels : outputs;
    const uint64_t across = shape.transposed ? outputs : channels;
    const uint64_t pixels = shape.transposed ? shape.in_pixels : shape.out_pixels;
    return {shape.groups * divided(down, rows), kernel * divided(across, columns),
            divided(shape.batch * pixels * bytes, k_round_bytes)};
  }
  const bool forward = pass == ConvPass::forward;
  const uint64_t pixels = forward ? shape.out_pixels : shape.in_pixels;
  const uint64_t summed = forward ? channels : outputs;
  return {shape.groups * divided(shape.batch * pixels, rows),
          divided(forward ? outputs : channels, columns),
          kernel * divided(summed * bytes, k_round_bytes)};
}

// From how many rounds times values of a tile on a part is worth its while, and from which share of
// those that all clusters would need on all of them take part.
struct LeastPart {
  uint64_t work = 1, percent = 100;
};

LeastPart least_part(const ConvShape& shape, ConvPass pass, bool more_tiles_than_blocks) {
  const bool fp32 = shape.bits == 32, more = more_tiles_than_blocks;
  if (pass == ConvPass::weight_gradient) {
    if (fp32) return more ? LeastPart{98304, 80} : LeastPart{131072, 100};
    return more ? LeastPart{262144, 60} : LeastPart{524288, 40};
  }
  if (fp32 && pass == ConvPass::forward) return {more ? 131072u : 262144u, 100};
  if (fp32) return {more ? 81920u : 163840u, 100};
  return {524288, 100};
}

// Tiles that are left in memory where `blocks` thread blocks run at once, in clusters. What is over
// after whole turns is divided among the clusters: all take part, or twice, four times, ... as many
// as there are tiles, where the sums are short.
uint64_t partial_tiles(const ConvShape& shape, ConvPass pass, const Tiling& tiling,
                       const CudnnAnswer& answer, uint64_t blocks, uint64_t tile_values) {
  const uint64_t down = answer.cluster / answer.cluster_across;
  const uint64_t clusters =
      divided(tiling.down, down) * divided(tiling.across, answer.cluster_across);
  const uint64_t at_once = std::max<uint64_t>(blocks / answer.cluster, 1);
  const uint64_t over = clusters % at_once;
  if (over == 0) return 0;
  const uint64_t most = at_once / over;
  const LeastPart least = least_part(shape, pass, clusters > at_once);
  const uint64_t work = tiling.rounds * tile_values;
  uint64_t parts = std::min(work / least.work, most);
  if (work * 100 >= most * least.work * least.percent) {
    parts = most;
  } else {
    while ((parts & (parts - 1)) != 0) parts &= parts - 1;
  }
  return parts < 2 ? 0 : over * parts * answer.cluster;
}

// What cuDNN said, with the tiles of this GPU instead of those of one without a GPU.
uint64_t with_partial_sums(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                           const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  if (!answer.divides || answer.tile == 0 || answer.cluster == 0) return answer.bytes;
  const auto tile = std::find_if(
      knowledge.conv_tiles.begin(), knowledge.conv_tiles.end(),
      [&](const knowledge::ConvTileRow& row) { return row.knob == answer.tile - int64_t{1}; });
  const auto cluster = std::find_if(
      knowledge.conv_clusters.begin(), knowledge.conv_clusters.end(),
      [&](const knowledge::ConvClusterRow& row) { return row.blocks == answer.cluster; });
  if (tile == knowledge.conv_tiles.end() || cluster == knowledge.conv_clusters.end())
    return answer.bytes;
  const auto rows = static_cast<uint64_t>(tile->rows),
             columns = static_cast<uint64_t>(tile->columns);
  Tiling tiling = tiling_of(shape, pass, rows, columns);
  // So many tiles are never divided.
  if (tiling.down > k_most_tiles || tiling.across > k_most_tiles) return answer.bytes;
  tiling.rounds = std::min(tiling.rounds, k_most_rounds);
  const uint64_t blocks = static_cast<uint64_t>(cluster->at_once) * setup.multiprocessors / 132;
  const auto bytes = [&](uint64_t at_once) {
    const uint64_t values = rows * columns;
    return partial_tiles(shape, pass, tiling, answer, at_once, values) * values * 4;
  };
  const uint64_t here = bytes(k_blocks_without_gpu);
  return here > answer.bytes ? answer.bytes : answer.bytes - here + bytes(blocks);
}

// Where Winograd's way may be taken, which cuDNN does not offer without a GPU: what that takes.
SizeAt winograd(const ConvShape& shape, const CudnnAnswer& answer,
                const knowledge::Knowledge& knowledge) {
  const ConvChoice choice = winograd_choice(shape, answer, knowledge);
  if (choice != ConvChoice::winograd && choice != ConvChoice::perhaps_winograd) return {};
  const double bytes =
      static_cast<double>(k_winograd_bytes) *
      (static_cast<double>(shape.channels + shape.outputs) * static_cast<double>(shape.batch) *
           static_cast<double>(shape.winograd_tiles) +
       static_cast<double>(shape.channels * shape.outputs / shape.groups));
  if (bytes > k_cudnn_workspace_most_bytes) return {};
  const auto whole = static_cast<uint64_t>(bytes);
  return {choice == ConvChoice::winograd ? whole : 0, whole};
}

// Engines that call cuBLAS stand before cuDNN's own and are not in its answer.
SizeAt pointwise(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                 const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  const uint64_t bytes = shape.bits / 8;
  const uint64_t io = bytes_of_input_and_output(shape);
  const uint64_t weights = bytes_of_weights(shape);
  const uint64_t sums = weights / bytes * 4;  // in fp32
  const bool of_weights = pass == ConvPass::weight_gradient;
  if (shape.channels_last) {
    if (!of_weights) return {k_cublas_leaves, answer.upper};
    const uint64_t parts = parts_of_sums(shape, knowledge);
    const uint64_t turns = shape.bits == 32 ? k_turns_fp32 : k_turns;
    return {parts != 0 ? parts * sums + k_before_parts : 0,
            std::max(answer.upper, std::min(std::max(io, k_parts_upper * sums),
                                            turns * setup.multiprocessors * k_largest_tile))};
  }
  ConvChoice choice = pointwise_choice(shape, pass, answer, knowledge);
  if (of_weights && shape.of_volumes)
    choice = shape.bits == 32 && answer.engine == k_engine_after_samples ? ConvChoice::samples
                                                                         : ConvChoice::own;
  const uint64_t own = with_partial_sums(shape, pass, answer, setup, knowledge);
  if (!of_weights)
    return {choice == ConvChoice::own ? own : k_cublas_leaves,
            std::max(answer.upper, io + weights)};
  const uint64_t limit = k_many_times * (io + 4 * weights);
  const uint64_t samples =
      shape.batch > limit / std::max<uint64_t>(sums, 1) ? limit : shape.batch * sums;
  uint64_t point = own;
  if (choice == ConvChoice::samples) point = samples;
  if (choice == ConvChoice::cublas) point = 0;
  return {point, std::max({answer.upper, samples, io + weights})};
}

// Of one channel per group, channels last: without a GPU cuDNN does not know the kernels that it
// has for them, which take nothing for the gradient of the data (14 of 14 measured where it names
// engine 40) and sums for that of the weights, but where it names none of its own for a wide kernel
// (7 of 7).
SizeAt depthwise(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer) {
  SizeAt out{answer.bytes, answer.upper};
  if (shape.bits != 16) return out;
  if (pass == ConvPass::data_gradient && answer.engine == k_engine_of_depthwise_data) out.point = 0;
  if (pass == ConvPass::weight_gradient && (answer.engine != 0 || shape.kernel_pixels < k_wide))
    out.point = depthwise_sums(shape);
  return out;
}

// Of few channels, channels first, in 16 bit: the first convolution of most networks for pictures.
// The engine that cuDNN names without a GPU pads the input to four channels, the one that runs to
// eight, and its gradient of the weights is summed in parts, each for 256 of the weights of an
// output at a time. On an H200 8 of 8 forward to the byte, 8 of 8 gradients to 0.6 MiB.
uint64_t of_few_channels(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                         uint64_t otherwise) {
  if (pass == ConvPass::forward && shape.channels == 1 && answer.engine == k_engine_of_one_channel)
    return 0;
  if (pass == ConvPass::data_gradient || answer.engine != k_engine_of_few_channels)
    return otherwise;
  const uint64_t more = (k_pads_to - k_padded_to) * 2;
  const uint64_t padded = otherwise + shape.batch * shape.in_pixels * more;
  if (pass == ConvPass::forward) return padded + shape.outputs * shape.kernel_pixels * more;
  const uint64_t weights = shape.kernel_pixels * k_pads_to;
  const uint64_t parts =
      k_parts_of_few / std::min(divided(weights, k_weights_at_once), k_parts_of_few);
  return padded + parts * shape.outputs * weights * 4;
}

}  // namespace

SizeAt unnamed_workspace(const ConvShape& shape, ConvPass pass, const SizeAt& other) {
  const uint64_t in_fp32 = 2 * bytes_of_weights(shape);
  const bool sums = pass == ConvPass::weight_gradient && shape.bits == 16 && shape.groups == 1 &&
                    !shape.of_volumes;
  return {sums ? in_fp32 : 0, std::max(in_fp32 + k_between, other.upper)};
}

SizeAt cudnn_workspace(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                       const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  if (shape.batch == 0 || shape.bits < 8) return {};
  SizeAt out;
  if (is_depthwise(shape)) {
    out = depthwise(shape, pass, answer);
  } else if (shape.pointwise && shape.groups == 1 && !shape.transposed) {
    out = pointwise(shape, pass, answer, setup, knowledge);
  } else {
    out = {with_partial_sums(shape, pass, answer, setup, knowledge), answer.upper};
    if (shape.bits == 16 && !shape.channels_last && shape.groups == 1 && !shape.transposed &&
        shape.channels != 0 && shape.channels <= k_padded_to)
      out.point = of_few_channels(shape, pass, answer, out.point);
    const bool gradient = pass == ConvPass::weight_gradient && !shape.transposed;
    // Never of groups: none of 46 measured on an H200.
    if (gradient && shape.bits == 32 && !shape.channels_last && shape.groups == 1 &&
        shape.winograd_tiles != 0) {
      const SizeAt other = winograd(shape, answer, knowledge);
      if (other.point != 0) out.point = other.point;
      out.upper = std::max(out.upper, other.upper);
    }
  }
  out.upper += setup.multiprocessors * k_largest_tile + k_between;
  out.upper = std::max(out.upper, out.point);
  return out;
}

}  // namespace cufit::fit
