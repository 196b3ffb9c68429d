// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/tight_fill.h"

#include <algorithm>
#include <numeric>

namespace cufit::pack {
namespace {

constexpr uint64_t k_most_fill_nodes = 3000;  // for one GPU

// The subset of `sizes` (the largest first) that comes nearest to `room`.
class BestSubset {
 public:
  BestSubset(const std::vector<uint32_t>& sizes, uint32_t room) : sizes_(sizes), least_(room) {
    rest_.assign(sizes.size() + 1, 0);
    for (size_t i = sizes.size(); i-- > 0;) rest_[i] = rest_[i + 1] + sizes[i];
    visit(0, room);
  }
  const std::vector<size_t>& chosen() const { return best_; }
  uint64_t nodes() const { return nodes_; }

 private:
  void visit(size_t next, uint32_t room) {
    if (room < least_) {
      least_ = room;
      best_ = chosen_;
    }
    // What is left over even if all that follows is taken.
    if (next == sizes_.size() || least_ == 0 || room >= rest_[next] + least_ ||
        ++nodes_ > k_most_fill_nodes)
      return;
    if (sizes_[next] <= room) {
      chosen_.push_back(next);
      visit(next + 1, room - sizes_[next]);
      chosen_.pop_back();
    }
    size_t other = next + 1;  // an equal one in its place gives nothing new
    while (other < sizes_.size() && sizes_[other] == sizes_[next]) ++other;
    visit(other, room);
  }

  const std::vector<uint32_t>& sizes_;
  std::vector<uint64_t> rest_;
  std::vector<size_t> chosen_, best_;
  uint32_t least_;
  uint64_t nodes_ = 0;
};

std::optional<std::vector<uint32_t>> filled(const Problem& problem, std::vector<uint32_t> items,
                                            const std::vector<uint32_t>& bins, uint32_t reserve,
                                            uint64_t& nodes) {
  std::vector<uint32_t> bin_of(problem.items.size(), k_no_bin);
  for (const uint32_t bin : bins) {
    const uint32_t kind = problem.bins[bin];
    const auto size = [&](uint32_t item) { return problem.items[item].mib[kind]; };
    if (problem.kinds[kind].mib < reserve) continue;
    uint32_t room = problem.kinds[kind].mib - reserve;
    const auto seed =
        std::find_if(items.begin(), items.end(), [&](uint32_t item) { return size(item) <= room; });
    if (seed == items.end()) continue;
    room -= size(*seed);
    bin_of[*seed] = bin;
    items.erase(seed);
    std::vector<uint32_t> fitting, sizes;
    for (const uint32_t item : items)
      if (size(item) <= room) fitting.push_back(item);
    std::stable_sort(fitting.begin(), fitting.end(),
                     [&](uint32_t a, uint32_t b) { return size(a) > size(b); });
    for (const uint32_t item : fitting) sizes.push_back(size(item));
    const BestSubset best(sizes, room);
    nodes += best.nodes();
    for (const size_t index : best.chosen()) bin_of[fitting[index]] = bin;
    items.erase(std::remove_if(items.begin(), items.end(),
                               [&](uint32_t item) { return bin_of[item] != k_no_bin; }),
                items.end());
  }
  if (!items.empty()) return std::nullopt;
  return bin_of;
}

}  // namespace

std::optional<std::vector<uint32_t>> tight_fill(const Problem& problem, std::vector<uint32_t> items,
                                                std::vector<uint32_t> bins, uint32_t reserve,
                                                uint64_t& nodes) {
  for (const BinKind& kind : problem.kinds)
    if (kind.divided()) return std::nullopt;
  const auto largest = [&](uint32_t item) {
    uint32_t most = 0;
    for (const uint32_t mib : problem.items[item].mib)
      if (mib != k_never) most = std::max(most, mib);
    return most;
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](uint32_t a, uint32_t b) { return largest(a) > largest(b); });
  // The small GPUs first, then the large ones: each order finds what the other does not.
  const auto room = [&](uint32_t bin) { return problem.kinds[problem.bins[bin]].mib; };
  std::stable_sort(bins.begin(), bins.end(),
                   [&](uint32_t a, uint32_t b) { return room(a) < room(b); });
  if (std::optional<std::vector<uint32_t>> done = filled(problem, items, bins, reserve, nodes))
    return done;
  if (bins.empty() || room(bins.front()) == room(bins.back())) return std::nullopt;
  std::reverse(bins.begin(), bins.end());
  return filled(problem, std::move(items), bins, reserve, nodes);
}

}  // namespace cufit::pack
