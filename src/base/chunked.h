// SPDX-License-Identifier: Apache-2.0
// Rows that only grow, in chunks of equal length: no copy on growth (a vector holds up to three
// times its content while it moves), so memory stays what the rows need. Rows of trivial types.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "base/huge_pages.h"

namespace cufit {

template <class T, unsigned k_chunk_bits = 15>
class Chunked {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Chunked() = default;
  Chunked(Chunked&&) noexcept = default;  // not copied by accident
  Chunked& operator=(Chunked&&) noexcept = default;
  static constexpr size_t k_chunk = size_t{1} << k_chunk_bits;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t at) { return chunks_[at >> k_chunk_bits][at & (k_chunk - 1)]; }
  const T& operator[](size_t at) const { return chunks_[at >> k_chunk_bits][at & (k_chunk - 1)]; }
  T& back() { return (*this)[size_ - 1]; }

  T& push_back(const T& value) {
    if ((size_ & (k_chunk - 1)) == 0) add_chunk();
    T& row = chunks_.back()[size_ & (k_chunk - 1)];
    row = value;
    ++size_;
    return row;
  }

  // The rows there are now, without a copy of them: they live as long as one of the two does.
  class Shared {
   public:
    const T& operator[](size_t at) const { return chunks_[at >> k_chunk_bits][at & (k_chunk - 1)]; }

   private:
    friend class Chunked;
    std::vector<std::shared_ptr<T[]>> chunks_;
  };
  Shared shared() const {
    Shared same;
    same.chunks_ = chunks_;
    return same;
  }

  // The longest run of rows from `first` on that lie side by side, `count` at most: loops over
  // millions of rows walk these.
  std::span<const T> run(size_t first, size_t count) const {
    size_t in_chunk = first & (k_chunk - 1);
    count = std::min({count, k_chunk - in_chunk, size_ - first});
    if (count == 0) return {};
    return {chunks_[first >> k_chunk_bits].get() + in_chunk, count};
  }

 private:
  // Raw bytes: pages of a chunk cost nothing before a row is written there. The third chunk and
  // those after it are worth huge pages where they have the size of one.
  void add_chunk() {
    constexpr size_t bytes = k_chunk * sizeof(T);
    const bool huge = bytes % k_huge_page == 0 && chunks_.size() >= 2;
    const auto align = std::align_val_t{huge ? k_huge_page : alignof(std::max_align_t)};
    void* const rows = ::operator new(bytes, align);
    chunks_.emplace_back(static_cast<T*>(rows),
                         [align](T* chunk) { ::operator delete(chunk, align); });
    if (huge) prefer_huge_pages(rows, bytes);
  }

  std::vector<std::shared_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

}  // namespace cufit
