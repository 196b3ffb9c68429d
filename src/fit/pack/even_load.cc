// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/even_load.h"

namespace cufit::pack {
namespace {

class EvenLoad {
 public:
  EvenLoad(const Problem& problem, const std::vector<uint32_t>& items)
      : problem_(problem), items_(items), bin_of_(problem.items.size(), k_no_bin) {
    for (const uint32_t kind : problem.bins) left_.push_back(problem.kinds[kind].mib);
  }

  // Begins with `bin_of`, which places all items.
  const std::vector<uint32_t>& improved(const std::vector<uint32_t>& bin_of) {
    bin_of_ = bin_of;
    for (const uint32_t item : items_) left_[bin_of_[item]] -= size(item, bin_of_[item]);
    for (size_t round = 0; round < 4096 && better_once(); ++round) continue;
    return bin_of_;
  }

 private:
  uint32_t size(uint32_t item, uint32_t bin) const {
    return problem_.items[item].mib[problem_.bins[bin]];
  }
  bool better_once() {
    uint32_t full = k_no_bin;
    for (const uint32_t item : items_)
      if (full == k_no_bin || left_[bin_of_[item]] < left_[full]) full = bin_of_[item];
    if (full == k_no_bin) return false;
    const uint32_t least = left_[full];
    for (const uint32_t item : items_) {
      if (bin_of_[item] != full) continue;
      for (uint32_t other = 0; other < left_.size(); ++other)
        if (other != full && (moved(item, other, least) || exchanged(item, other, least)))
          return true;
    }
    return false;
  }
  bool moved(uint32_t item, uint32_t to, uint32_t least) {
    const uint32_t there = size(item, to);
    if (there == k_never || there > left_[to] || left_[to] - there <= least) return false;
    put(item, to);
    return true;
  }
  bool exchanged(uint32_t item, uint32_t to, uint32_t least) {
    const uint32_t from = bin_of_[item];
    for (const uint32_t other : items_) {
      if (bin_of_[other] != to || size(item, to) == k_never || size(other, from) == k_never)
        continue;
      const int64_t here = int64_t{left_[from]} + size(item, from) - size(other, from);
      const int64_t there = int64_t{left_[to]} + size(other, to) - size(item, to);
      if (here <= int64_t{least} || there <= int64_t{least}) continue;
      left_[from] = static_cast<uint32_t>(here);
      left_[to] = static_cast<uint32_t>(there);
      bin_of_[item] = to;
      bin_of_[other] = from;
      return true;
    }
    return false;
  }
  void put(uint32_t item, uint32_t to) {
    left_[bin_of_[item]] += size(item, bin_of_[item]);
    left_[to] -= size(item, to);
    bin_of_[item] = to;
  }

  const Problem& problem_;
  const std::vector<uint32_t>& items_;
  std::vector<uint32_t> bin_of_, left_;
};

}  // namespace

std::vector<uint32_t> with_even_load(const Problem& problem, const std::vector<uint32_t>& items,
                                     const std::vector<uint32_t>& bin_of) {
  return EvenLoad(problem, items).improved(bin_of);
}

}  // namespace cufit::pack
