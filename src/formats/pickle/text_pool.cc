// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/text_pool.h"

#include <cstring>

#include "base/bytes.h"

namespace cufit::formats {
namespace {

constexpr size_t k_text_pool_block = 64u << 10;

uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Words of a snapshot are short; a call of memcmp costs more than the comparison.
bool same_bytes(const char* a, const char* b, size_t size) {
  for (; size >= 8; a += 8, b += 8, size -= 8) {
    if (load_le<uint64_t>(a) != load_le<uint64_t>(b)) return false;
  }
  if (size >= 4) {
    return load_le<uint32_t>(a) == load_le<uint32_t>(b) &&
           load_le<uint32_t>(a + size - 4) == load_le<uint32_t>(b + size - 4);
  }
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace

uint64_t hash_bytes(const void* bytes, size_t size) {
  constexpr uint64_t k_a = 0x9e3779b97f4a7c15, k_b = 0xd1b54a32d192ed03;  // odd, bits well spread
  const char* at = static_cast<const char*>(bytes);
  uint64_t hash = size * k_a + 1;
  for (; size >= 8; at += 8, size -= 8) hash = mix(hash ^ load_le<uint64_t>(at), k_a);
  uint64_t rest = 0;
  if (size >= 4) {
    rest = load_le<uint32_t>(at) | static_cast<uint64_t>(load_le<uint32_t>(at + size - 4)) << 32;
  } else if (size > 0) {
    auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(at[i])); };
    rest = byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }
  return mix(hash ^ rest, k_b);
}

uint32_t TextPool::intern(std::string_view text) {
  if (slots_.size() < 2 * (size() + 1)) grow();
  uint32_t hash = static_cast<uint32_t>(hash_bytes(text.data(), text.size()) >> 16);
  size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) {
      slots_[slot] = static_cast<uint32_t>(size() + 1);
      entries_.push_back({keep(text), static_cast<uint32_t>(text.size()), hash});
      return static_cast<uint32_t>(size() - 1);
    }
    const Entry& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash && entry.size == text.size() &&
        same_bytes(entry.at, text.data(), text.size())) {
      return slots_[slot] - 1;
    }
  }
}

void TextPool::grow() {
  slots_.assign(slots_.empty() ? 256 : 2 * slots_.size(), 0);
  size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < size(); ++i) {
    size_t slot = entries_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

const char* TextPool::keep(std::string_view text) {
  if (text.empty()) return "";
  if (text.size() > left_) {
    if (text.size() > k_text_pool_block / 4) {  // a block of its own; the open one stays open
      blocks_.emplace_back(new char[text.size()]);
      std::memcpy(blocks_.back().get(), text.data(), text.size());
      return blocks_.back().get();
    }
    blocks_.emplace_back(new char[k_text_pool_block]);
    next_ = blocks_.back().get();
    left_ = k_text_pool_block;
  }
  char* kept = next_;
  std::memcpy(kept, text.data(), text.size());
  next_ += text.size();
  left_ -= text.size();
  return kept;
}

}  // namespace cufit::formats
