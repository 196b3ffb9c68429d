// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/embedding_workspace.h"

#include <algorithm>

namespace cufit::fit {
namespace {

// aten/src/ATen/native/cuda/EmbeddingBackwardKernel.cu: indices are sorted and the rows of each
// summed in parts of ten, where there are more than a few.
constexpr uint64_t k_few = 3072;
constexpr uint64_t k_rows_of_a_part = 10;
constexpr uint64_t k_number = 8;  // bytes
constexpr uint64_t k_embedding_workspace_most = uint64_t{1} << 40, k_most_row = uint64_t{1} << 16;

}  // namespace

SizeAt embedding_workspace(std::span<const uint64_t> numbers, bool of_bags) {
  if (numbers.size() != 4) return {};
  const uint64_t count = numbers[0], rows = numbers[1], width = numbers[2], bytes = numbers[3];
  if ((count <= k_few && !of_bags) || count > k_embedding_workspace_most || width > k_most_row ||
      bytes > k_number)
    return {};
  const uint64_t distinct = std::min(count, rows);
  const uint64_t parts = count / k_rows_of_a_part + distinct;
  // Three numbers per index, two per row that is met, one per part; the sum of each part.
  const uint64_t out = k_number * (3 * count + 2 * distinct + parts) + parts * width * bytes;
  return {out, out};
}

}  // namespace cufit::fit
