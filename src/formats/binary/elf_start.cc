// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_start.h"

#include <cstring>

#include "base/format.h"
#include "formats/binary/fatbin.h"

namespace cufit::formats {
namespace {

constexpr std::string_view k_fatbin_magic = "\x50\xED\x55\xBA";
constexpr uint64_t k_container_bytes = 16;

class StringViewSource final : public ByteSource {
 public:
  StringViewSource(std::string_view bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= bytes_.size()) return size_t{0};
    const size_t size = std::min<size_t>(out.size(), bytes_.size() - static_cast<size_t>(offset));
    std::memcpy(out.data(), bytes_.data() + offset, size);
    return size;
  }

 private:
  std::string_view bytes_;
  std::string name_;
};

}  // namespace

Result<ElfStart> read_elf_start(std::string_view start, uint64_t whole_bytes,
                                const std::string& name) {
  if (start.size() < 20 || std::memcmp(start.data(),
                                       "\x7f"
                                       "ELF",
                                       4) != 0)
    return fail(Code::malformed, format("`{}`: no ELF file", name));
  ElfStart out;
  out.file.is_64bit = start[4] == 2;
  out.file.type = load_le<uint16_t>(start.data() + 16);
  out.file.machine = load_le<uint16_t>(start.data() + 18);
  const StringViewSource source(start, name);
  CodeTable table;
  // Containers lie on 8-byte boundaries; headers of 4 bytes that look like one are of a version and
  // a size that no container has.
  for (size_t at = start.find(k_fatbin_magic); at != std::string_view::npos;
       at = start.find(k_fatbin_magic, at)) {
    uint64_t size = 0;
    const bool whole = at % 8 == 0 && start.size() - at >= k_container_bytes;
    if (whole && load_le<uint16_t>(start.data() + at + 6) == k_container_bytes)
      size = load_le<uint64_t>(start.data() + at + 8);
    // Nor may it pass the end of the file: the sum below must not wrap.
    const uint64_t room =
        whole_bytes > at + k_container_bytes ? whole_bytes - at - k_container_bytes : 0;
    if (size == 0 || size > room) {
      at += k_fatbin_magic.size();
      continue;
    }
    const uint64_t end = std::min<uint64_t>(start.size(), at + k_container_bytes + size);
    std::vector<Damage> ignored;  // of the last one, which is cut off
    bool any = false;
    walk_fatbin(
        source, at, end - at,
        [&](const FatbinEntry& entry) {
          table.add(entry);
          any = true;
        },
        ignored);
    if (any) ++out.containers;
    at = static_cast<size_t>(end);
  }
  out.file.device_code = table.sorted();
  out.file.has_fatbin = out.containers > 0;
  out.seen_bytes = start.size();
  return out;
}

}  // namespace cufit::formats
