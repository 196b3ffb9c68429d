// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/attention_workspace.h"

#include <algorithm>
#include <optional>

namespace cufit::fit {
namespace {

constexpr uint64_t k_attention_workspace_most = uint64_t{1} << 48;
constexpr uint64_t k_fp32 = 4;
constexpr uint64_t k_keys = 64, k_parts_of_all = 200;

// What the tracer writes: the kernel, 8 more in backward.
enum Kernel : uint64_t { k_flash = 8, k_efficient = 9, k_cudnn = 10 };

uint64_t up_to(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The product; 0 beyond k_most.
uint64_t product(std::initializer_list<uint64_t> numbers) {
  uint64_t out = 1;
  for (const uint64_t number : numbers) {
    if (number > k_attention_workspace_most ||
        (number != 0 && out > k_attention_workspace_most / number))
      return 0;
    out *= number;
  }
  return out;
}

uint64_t blocks(uint64_t value, uint64_t of) { return (value + of - 1) / of; }

// Of the memory-efficient kernel: blocks of the queries' gradient in fp32, each with 16 bytes of
// locks; from heads of more than 128 on those of keys and values, too, where the type is narrower,
// of 64 keys for each part that the keys are divided in (attention_backward.cu makes at most 200
// parts of all pairs); a value per row. To the byte what it asked for on an H200 in 337 of 342
// combinations, before the parts were reckoned; the five others had heads of more than 128 and many
// keys, and took less. Since then 13 x 1 heads of 640 and 6,007 keys, to the byte.
uint64_t efficient_workspace(uint64_t bytes, uint64_t pairs, uint64_t queries, uint64_t keys,
                             uint64_t size) {
  const bool narrow = bytes < k_fp32;
  const uint64_t rows = size <= 64 ? 64 : 128;
  const uint64_t columns = narrow && size > 64 && size <= 128 ? 128 : 64;
  const uint64_t block = rows * columns * k_fp32 + 16;
  uint64_t own = product({pairs, blocks(queries, rows), blocks(size, columns), block}) +
                 product({pairs, queries, k_fp32});
  if (narrow && size > 128) {
    const uint64_t parts = std::min(
        blocks(keys, k_keys), std::max<uint64_t>(k_parts_of_all / std::max<uint64_t>(pairs, 1), 1));
    own += product({2, pairs, parts * k_keys, up_to(size, 128), k_fp32});
  }
  return own;
}

}  // namespace

SizeAt attention_product(std::span<const uint64_t> numbers) {
  if (numbers.size() != 8 || numbers[0] != k_efficient || numbers[1] != 8 * k_fp32) return {};
  const uint64_t bytes = product({numbers[2], numbers[3], numbers[4], numbers[6], k_fp32});
  return {bytes, bytes};
}

SizeAt attention_workspace(std::span<const uint64_t> numbers) {
  if (numbers.size() != 8) return {};
  const uint64_t bytes = numbers[1] / 8, batch = numbers[2], heads = numbers[3];
  const uint64_t queries = numbers[4], keys = numbers[5], size = numbers[6];
  if (queries > k_attention_workspace_most || size > k_attention_workspace_most) return {};
  // Gradients of keys and values for each head of the queries, summed up afterwards.
  const uint64_t grouped =
      numbers[7] != heads ? product({2, batch, heads, keys, size, bytes}) : uint64_t{0};
  uint64_t own = 0;
  switch (numbers[0]) {
    case k_cudnn:
      // To the byte what cuDNN 9.19 asked for on an H100 in 320 combinations: the gradient of the
      // queries in fp32 and a value per row.
      own = product({k_fp32, batch, heads, queries, size}) +
            product({k_fp32, batch, heads, queries}) + 256;
      break;
    case k_flash:
      // dq_accum and softmax_d of flash_api.cpp, mha_bwd.
      own = product({k_fp32, batch, heads, up_to(queries, 128), up_to(size, 32) + 1});
      break;
    case k_efficient:
      own = efficient_workspace(bytes, product({batch, heads}), queries, keys, size);
      // The output's gradient in the kernel's order, where it comes in another.
      return {own + grouped, own + grouped + product({batch, heads, queries, size, bytes})};
    default:
      return {};
  }
  const uint64_t upper = numbers[0] == k_cudnn ? own + grouped : 2 * own + grouped;
  return {own + grouped, upper};
}

}  // namespace cufit::fit
