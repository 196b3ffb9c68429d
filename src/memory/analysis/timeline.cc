// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/timeline.h"

#include <algorithm>

namespace cufit::analysis {
namespace {

// A block that already waited for its completion when the trace began was never allocated in it.
bool counts(const Lifetime& row) { return row.alloc_event != k_before || row.free_requested != 0; }

// Rows by the event at which they begin or end: one slot per event, since an event is about one
// row.
struct Changes {
  std::vector<uint32_t> row;  // row + 1; 0: nothing changes
  explicit Changes(const Lifetimes& lifetimes) : row(lifetimes.events) {
    const std::vector<Lifetime>& rows = lifetimes.rows;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      if (!counts(rows[i])) continue;
      if (rows[i].alloc_event < row.size()) row[rows[i].alloc_event] = i + 1;
      if (rows[i].free_requested < row.size()) row[rows[i].free_requested] = i + 1;
    }
  }
};

uint32_t finest_bucket(uint32_t events) {
  uint32_t size = k_min_bucket;
  while ((events + uint64_t{size} - 1) / size > k_max_buckets) size *= k_fan_out;
  return size;
}

Level coarser(const Level& fine) {
  Level out;
  out.bucket_events = fine.bucket_events * k_fan_out;
  for (size_t i = 0; i < fine.max.size(); ++i) {
    if (i % k_fan_out == 0) {
      out.min.push_back(fine.min[i]);
      out.max.push_back(fine.max[i]);
      out.at.push_back(fine.at[i]);
      continue;
    }
    out.min.back() = std::min(out.min.back(), fine.min[i]);
    if (fine.max[i] > out.max.back()) {
      out.max.back() = fine.max[i];
      out.at.back() = fine.at[i];
    }
  }
  return out;
}

// Adds the rows up event by event.
class Summing {
 public:
  Summing(const Lifetimes& lifetimes, std::span<const uint8_t> group_of, uint32_t groups)
      : lifetimes_(lifetimes), group_of_(group_of), now_(groups) {
    for (uint32_t i = 0; i < lifetimes.rows.size(); ++i)
      if (lifetimes.rows[i].alloc_event == k_before && counts(lifetimes.rows[i])) add(i);
  }
  void step(uint32_t event, uint32_t slot) {
    if (slot == 0) return;
    if (lifetimes_.rows[slot - 1].alloc_event == event) {
      add(slot - 1);
    } else {
      remove(slot - 1);
    }
  }
  uint64_t total() const { return total_; }
  const std::vector<uint64_t>& parts() const { return now_; }

 private:
  void add(uint32_t row) {
    now_[group_of_[row]] += lifetimes_.rows[row].block_bytes;
    total_ += lifetimes_.rows[row].block_bytes;
  }
  void remove(uint32_t row) {
    now_[group_of_[row]] -= lifetimes_.rows[row].block_bytes;
    total_ -= lifetimes_.rows[row].block_bytes;
  }

  const Lifetimes& lifetimes_;
  std::span<const uint8_t> group_of_;
  std::vector<uint64_t> now_;
  uint64_t total_ = 0;
};

}  // namespace

Timeline timeline_of(const Lifetimes& lifetimes, std::span<const uint8_t> group_of,
                     uint32_t groups) {
  Timeline out;
  out.events = lifetimes.events;
  out.groups = groups;
  const Changes changes(lifetimes);
  Summing sum(lifetimes, group_of, groups);
  Level finest;
  finest.bucket_events = finest_bucket(out.events);
  for (uint32_t e = 0; e < out.events; ++e) {
    sum.step(e, changes.row[e]);
    const uint64_t value = sum.total();
    if (e % finest.bucket_events == 0) {
      finest.min.push_back(value);
      finest.max.push_back(value);
      finest.at.push_back(e);
      out.parts.insert(out.parts.end(), sum.parts().begin(), sum.parts().end());
      continue;
    }
    finest.min.back() = std::min(finest.min.back(), value);
    if (value > finest.max.back()) {
      finest.max.back() = value;
      finest.at.back() = e;
      std::copy(sum.parts().begin(), sum.parts().end(), out.parts.end() - groups);
    }
  }
  out.levels.push_back(std::move(finest));
  while (out.levels.back().max.size() > k_fan_out) out.levels.push_back(coarser(out.levels.back()));
  return out;
}

}  // namespace cufit::analysis
