// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/ld_cache.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr std::string_view k_ld_cache_old_magic = "ld.so-1.7.0";
constexpr std::string_view k_new_magic = "glibc-ld.so.cache1.1";
constexpr size_t k_header_size = 48, k_entry_size = 24;
constexpr uint32_t k_ld_cache_max_entries = 1u << 18;  // a full desktop has about 5 000
constexpr size_t k_most_damage = 16;
constexpr uint64_t k_named_hwcap = uint64_t{1} << 62;
constexpr uint32_t k_extension_magic = 0xeaa42174;

uint32_t u32(std::string_view bytes, size_t at) { return load_le<uint32_t>(bytes.data() + at); }

// The zero-terminated string at `at`; nullopt outside the data.
std::optional<std::string_view> string_at(std::string_view data, uint64_t at) {
  if (at >= data.size()) return std::nullopt;
  size_t end = data.find('\0', at);
  if (end == std::string_view::npos) return std::nullopt;
  return data.substr(at, end - at);
}

// Where the new header begins; nullopt = nowhere.
std::optional<size_t> find_header(std::string_view file) {
  size_t at = 0;
  if (file.substr(0, k_ld_cache_old_magic.size()) == k_ld_cache_old_magic && file.size() >= 16) {
    uint64_t end = 16 + uint64_t{u32(file, 12)} * 12;
    at = static_cast<size_t>(std::min<uint64_t>((end + 7) / 8 * 8, file.size()));
    // 32-bit systems align to 4.
    if (file.substr(at, k_new_magic.size()) != k_new_magic && at >= 4) at -= 4;
  }
  if (file.size() - at < k_header_size || file.substr(at, k_new_magic.size()) != k_new_magic) {
    return std::nullopt;
  }
  return at;
}

struct Extensions {
  std::vector<std::string_view> hwcaps;
  std::string generator;
};

// Unlike those of the entries, the offsets of the extensions count from the start of the file.
Extensions read_extensions(std::string_view data, uint64_t at, std::vector<Damage>& damage) {
  Extensions out;
  if (at == 0) return out;
  if (at + 8 > data.size() || u32(data, at) != k_extension_magic) {
    damage.push_back(
        {at, "the extension directory lies outside the file or has a wrong magic number"});
    return out;
  }
  uint32_t count = std::min<uint32_t>(u32(data, at + 4), 64);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t row = at + 8 + uint64_t{i} * 16;
    if (row + 16 > data.size()) break;
    uint32_t tag = u32(data, row);
    uint64_t offset = u32(data, row + 8), size = u32(data, row + 12);
    if (offset > data.size() || size > data.size() - offset) {
      damage.push_back({row, "an extension reaches past the end of the file"});
      continue;
    }
    if (tag == 0) out.generator.assign(data.substr(offset, std::min<uint64_t>(size, 256)));
    if (tag != 1) continue;
    for (uint64_t word = 0; word + 4 <= size && out.hwcaps.size() < 256; word += 4)
      out.hwcaps.push_back(string_at(data, u32(data, offset + word)).value_or(std::string_view()));
  }
  return out;
}

}  // namespace

Result<LdCache> parse_ld_cache(std::string bytes) {
  LdCache cache;
  cache.bytes = std::move(bytes);
  // A short string would live inside the object and move with it; nothing that short has a header
  // anyway.
  std::optional<size_t> header = find_header(cache.bytes);
  if (!header)
    return fail(Code::malformed,
                "no `glibc-ld.so.cache1.1` header at byte 0 or behind an old table");
  std::string_view data = std::string_view(cache.bytes).substr(*header);
  if (uint8_t order = static_cast<uint8_t>(data[28]) & 3; order == 3) {
    return fail(Code::unsupported, "the loader cache is big-endian");
  }
  uint32_t count = u32(data, 20);
  uint64_t fit = (data.size() - k_header_size) / k_entry_size;
  if (count > k_ld_cache_max_entries || count > fit) {
    cache.damage.push_back({*header + 20, format("{} entries are announced, {} fit", count, fit)});
    count = static_cast<uint32_t>(std::min<uint64_t>({count, fit, k_ld_cache_max_entries}));
  }
  Extensions extensions = read_extensions(cache.bytes, u32(data, 32), cache.damage);
  cache.generator = std::move(extensions.generator);
  cache.entries.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    size_t at = k_header_size + size_t{i} * k_entry_size;
    auto name = string_at(data, u32(data, at + 4));
    auto path = string_at(data, u32(data, at + 8));
    if (!name || !path || name->empty() || path->empty()) {
      if (cache.damage.size() < k_most_damage)
        cache.damage.push_back({*header + at, format("entry {} has no valid name or path", i)});
      continue;
    }
    LdCacheEntry entry{*name, *path, {}, u32(data, at), false};
    uint64_t hwcap = load_le<uint64_t>(data.data() + at + 16);
    if (hwcap & k_named_hwcap) {
      uint32_t index = static_cast<uint32_t>(hwcap);
      if (index >= extensions.hwcaps.size() || extensions.hwcaps[index].empty())
        continue;  // as glibc does
      entry.hwcaps = extensions.hwcaps[index];
    } else {
      entry.legacy_hwcap = hwcap != 0;
    }
    cache.entries.push_back(entry);
  }
  return cache;
}

std::vector<const LdCacheEntry*> LdCache::find(std::string_view name,
                                               std::string_view architecture) const {
  // glibc's FLAG_X8664_LIB64 and FLAG_AARCH64_LIB64, each with FLAG_ELF_LIBC6.
  uint32_t wanted = architecture == "x86_64" ? 0x0303 : architecture == "aarch64" ? 0x0a03 : 0;
  std::vector<const LdCacheEntry*> out;
  for (const LdCacheEntry& entry : entries)
    if (entry.name == name && entry.flags == wanted) out.push_back(&entry);
  return out;
}

}  // namespace cufit::formats
