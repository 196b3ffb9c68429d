// SPDX-License-Identifier: Apache-2.0
// Binary search for questions that lie close to one another, as those about allocations in their
// order: where the last answer or the one after it holds, nothing is searched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cufit::analysis {

class NearSearch {
 public:
  // How many of `count` ascending numbers are not greater than `value`; number(i) is the i-th.
  template <class Number>
  size_t not_greater(size_t count, uint32_t value, const Number& number) {
    const auto fits = [&](size_t at) {
      return at <= count && (at == 0 || number(at - 1) <= value) &&
             (at == count || number(at) > value);
    };
    if (fits(last_)) return last_;
    if (fits(last_ + 1)) return ++last_;
    size_t from = 0, to = count;
    while (from < to) {
      const size_t middle = from + (to - from) / 2;
      if (number(middle) <= value)
        from = middle + 1;
      else
        to = middle;
    }
    return last_ = from;
  }

 private:
  size_t last_ = 0;
};

// [begin, end) of events, by begin; they do not overlap.
class EventRanges {
 public:
  struct Range {
    uint32_t begin, end;
  };
  bool empty() const { return ranges_.empty(); }
  size_t size() const { return ranges_.size(); }
  const Range& back() const { return ranges_.back(); }
  const Range& operator[](size_t i) const { return ranges_[i]; }
  void push_back(Range range) { ranges_.push_back(range); }
  // The number of the one that holds the event.
  std::optional<size_t> with(uint32_t event) {
    const size_t after =
        search_.not_greater(ranges_.size(), event, [&](size_t i) { return ranges_[i].begin; });
    if (after == 0 || event >= ranges_[after - 1].end) return std::nullopt;
    return after - 1;
  }

 private:
  std::vector<Range> ranges_;
  NearSearch search_;
};

}  // namespace cufit::analysis
