// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/initial_model.h"

#include <algorithm>
#include <map>

namespace cufit::analysis {
namespace {

struct OfSize {
  size_t gradients = 0;
  std::vector<size_t> kept;  // rows
};

}  // namespace

void share_initial_model(const Lifetimes& lifetimes, uint32_t begin, uint32_t end,
                         std::vector<Category>& categories) {
  std::map<uint64_t, OfSize> by_size;
  for (size_t i = 0; i < lifetimes.rows.size(); ++i) {
    const Lifetime& row = lifetimes.rows[i];
    if (row.free_requested >= begin && row.free_requested < end)
      ++by_size[row.requested_bytes].gradients;
    if (row.alloc_event == k_before && is_kept(row, lifetimes) &&
        categories[i] == Category::unknown)
      by_size[row.requested_bytes].kept.push_back(i);
  }
  std::map<size_t, size_t> votes;  // blocks for each gradient -> gradients
  size_t gradients = 0;
  for (const auto& [size, found] : by_size) {
    if (found.gradients == 0) continue;
    gradients += found.gradients;
    votes[found.kept.size() / found.gradients] += found.gradients;
  }
  if (votes.empty()) return;
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const size_t parts = most->first;
  if (parts == 0 || most->second * 10 < gradients * 9) return;
  for (const auto& [size, found] : by_size) {
    const size_t shared = std::min(found.kept.size(), parts * found.gradients);
    for (size_t k = 0; k < shared; ++k)
      categories[found.kept[k]] =
          k < found.gradients ? Category::parameters : Category::optimizer_state;
  }
}

}  // namespace cufit::analysis
