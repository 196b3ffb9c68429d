// SPDX-License-Identifier: Apache-2.0
#include "fit/matched_recordings.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace cufit::fit {
namespace {

using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;

// Where two recordings part, so many storages are skipped in both together at most, and so many
// must then go together again, most of them exactly.
constexpr size_t k_most_skipped = 400, k_together = 6, k_exactly = 4;

// Bytes times batch sizes.
using Wide = __int128;

struct Made {
  uint64_t bytes = 0;
  uint32_t key = 0;  // the same for the same place of the program
};

using Keys =
    std::map<std::tuple<std::string_view, std::string_view, formats::TracePhase>, uint32_t>;

std::vector<Made> storages_of(const TraceEvents& events, Keys& keys) {
  std::vector<uint32_t> of_site;
  for (const formats::TraceSite& site : events.sites) {
    const auto key = std::make_tuple(std::string_view(events.texts[site.op]),
                                     std::string_view(events.texts[site.module]), site.phase);
    of_site.push_back(keys.try_emplace(key, static_cast<uint32_t>(keys.size())).first->second);
  }
  std::vector<Made> out;
  for (const TraceEvent& event : events.events)
    if (event.kind == TraceEventKind::alloc) out.push_back({event.bytes, of_site[event.site]});
  return out;
}

class Matcher {
 public:
  Matcher(std::vector<Made> base, uint64_t base_batch, std::vector<Made> other,
          uint64_t other_batch)
      : base_(std::move(base)),
        other_(std::move(other)),
        base_batch_(base_batch),
        other_batch_(other_batch) {}

  std::vector<uint32_t> run() {
    std::vector<uint32_t> out(base_.size(), k_unmatched);
    size_t i = 0, j = 0;
    while (i < base_.size() && j < other_.size()) {
      if (can_be(i, j) && (exact(i, j) || together(i + 1, j + 1))) {
        out[i++] = static_cast<uint32_t>(j++);
        continue;
      }
      if (!skip(i, j)) break;
    }
    return out;
  }

 private:
  // Equal, or in proportion to the batch size.
  bool exact(size_t i, size_t j) const {
    const uint64_t a = base_[i].bytes, b = other_[j].bytes;
    return a == b || static_cast<Wide>(a) * other_batch_ == static_cast<Wide>(b) * base_batch_;
  }
  // A constant that is not negative and a part in proportion.
  bool can_be(size_t i, size_t j) const {
    if (base_[i].key != other_[j].key) return false;
    const bool larger = base_batch_ > other_batch_;
    const uint64_t low = larger ? other_[j].bytes : base_[i].bytes;
    const uint64_t high = larger ? base_[i].bytes : other_[j].bytes;
    const uint64_t low_batch = std::min(base_batch_, other_batch_);
    const uint64_t high_batch = std::max(base_batch_, other_batch_);
    return low <= high &&
           static_cast<Wide>(high) * low_batch <= static_cast<Wide>(low) * high_batch;
  }
  bool together(size_t i, size_t j) const {
    size_t exactly = 0;
    for (size_t k = 0; k < k_together; ++k) {
      if (i + k == base_.size() && j + k == other_.size())
        return exactly + k_together - k >= k_exactly;
      if (i + k >= base_.size() || j + k >= other_.size() || !can_be(i + k, j + k)) return false;
      exactly += exact(i + k, j + k) ? 1 : 0;
    }
    return exactly >= k_exactly;
  }
  // To where the two go together again, the nearest such place.
  bool skip(size_t& i, size_t& j) const {
    for (size_t skipped = 1; skipped <= k_most_skipped; ++skipped)
      for (size_t of_base = 0; of_base <= skipped; ++of_base) {
        const size_t of_other = skipped - of_base;
        if (i + of_base >= base_.size() || j + of_other >= other_.size()) continue;
        if (!together(i + of_base, j + of_other)) continue;
        i += of_base;
        j += of_other;
        return true;
      }
    return false;
  }

  const std::vector<Made> base_, other_;
  const uint64_t base_batch_, other_batch_;
};

}  // namespace

std::vector<uint32_t> match_recordings(const TraceEvents& base, uint64_t base_batch,
                                       const TraceEvents& other, uint64_t other_batch) {
  Keys keys;
  std::vector<Made> of_base = storages_of(base, keys);
  return Matcher(std::move(of_base), base_batch, storages_of(other, keys), other_batch).run();
}

}  // namespace cufit::fit
