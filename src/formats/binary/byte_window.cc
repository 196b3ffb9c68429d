// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/byte_window.h"

#include <algorithm>
#include <cstring>

namespace cufit::formats {

void Window::fill(uint64_t offset) {
  start_ = offset;
  filled_ = 0;
  if (offset >= source_->size_bytes()) return;
  Result<size_t> got = source_->read(offset, buffer_);
  if (got) filled_ = std::min(*got, buffer_.size());
}

const std::byte* Window::at(uint64_t offset, size_t size) {
  if (size > buffer_.size()) return nullptr;
  if (offset < start_ || offset - start_ > filled_ || filled_ - (offset - start_) < size) {
    fill(offset);
    if (filled_ < size) return nullptr;
  }
  return buffer_.data() + (offset - start_);
}

std::span<const std::byte> Window::from(uint64_t offset) {
  if (offset < start_ || offset - start_ >= filled_) fill(offset);
  size_t skip = static_cast<size_t>(offset - start_);
  return {buffer_.data() + skip, filled_ - skip};
}

bool Window::string(uint64_t offset, uint64_t end, size_t limit, std::string& out) {
  out.clear();
  while (offset < end && out.size() <= limit) {
    std::span<const std::byte> bytes = from(offset);
    if (bytes.size() > end - offset) bytes = bytes.first(static_cast<size_t>(end - offset));
    if (bytes.empty()) return false;
    const void* zero = std::memchr(bytes.data(), 0, bytes.size());
    size_t count = zero ? static_cast<size_t>(static_cast<const std::byte*>(zero) - bytes.data())
                        : bytes.size();
    out.append(reinterpret_cast<const char*>(bytes.data()), count);
    if (zero) return out.size() <= limit;
    offset += count;
  }
  return false;
}

void add_damage(std::vector<Damage>& list, uint64_t offset, std::string what) {
  if (list.size() < k_max_damage) {
    list.push_back({offset, std::move(what)});
  } else if (list.size() == k_max_damage) {
    list.push_back({offset, "more damage follows that is not listed"});
  }
}

}  // namespace cufit::formats
