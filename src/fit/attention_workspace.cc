// SPDX-License-Identifier: Apache-2.0
#include "fit/attention_workspace.h"

#include <optional>

namespace cufit::fit {
namespace {

constexpr uint64_t k_most = uint64_t{1} << 48;
constexpr uint64_t k_fp32 = 4;

// What the tracer writes: the kernel, 8 more in backward.
enum Kernel : uint64_t { k_flash = 8, k_efficient = 9, k_cudnn = 10 };

uint64_t up_to(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The product; 0 beyond k_most.
uint64_t product(std::initializer_list<uint64_t> numbers) {
  uint64_t out = 1;
  for (const uint64_t number : numbers) {
    if (number > k_most || (number != 0 && out > k_most / number)) return 0;
    out *= number;
  }
  return out;
}

}  // namespace

SizeAt attention_workspace(std::span<const uint64_t> numbers) {
  if (numbers.size() != 8) return {};
  const uint64_t bytes = numbers[1] / 8, batch = numbers[2], heads = numbers[3];
  const uint64_t queries = numbers[4], keys = numbers[5], size = numbers[6];
  if (queries > k_most || size > k_most) return {};
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
      // Gradients in fp32 where the type is narrower, blocks of 64 rows; the output's gradient in
      // the kernel's order; a value per row.
      own = product({k_fp32, batch, heads, up_to(queries, 64), size + 1}) +
            product({batch, heads, queries, size, bytes});
      break;
    default:
      return {};
  }
  const uint64_t upper = numbers[0] == k_cudnn ? own + grouped : 2 * own + grouped;
  return {own + grouped, upper};
}

}  // namespace cufit::fit
