// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/fatbin.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr uint32_t k_fatbin_magic_number = 0xBA55ED50, k_fatbin_old_magic = 0x1EE55A01;
constexpr size_t k_container_header = 16;
constexpr size_t k_entry_header = 64;
// Entries lie some 100 KB apart, so a read serves a container header and its first entry and not
// much else.
constexpr size_t k_window_bytes = 512;
constexpr size_t k_scan_bytes = 64u << 10;
// 700 times what the largest library has; a section full of empty containers ends here.
constexpr uint64_t k_max_headers = 4u << 20;
// Distinct (kind, architecture, ISA); about 20 in the largest libraries.
constexpr size_t k_max_rows = 512;

bool is_magic(uint32_t value) {
  return value == k_fatbin_magic_number || value == k_fatbin_old_magic;
}

class Walk {
 public:
  Walk(const ByteSource& source, uint64_t offset, uint64_t end,
       const std::function<void(const FatbinEntry&)>& visit, std::vector<Damage>& damage)
      : window_(source, k_window_bytes),
        scan_(source, k_scan_bytes),
        position_(offset),
        end_(end),
        visit_(visit),
        damage_(damage) {}

  void run() {
    while (position_ < end_ && headers_ < k_max_headers) {
      const std::byte* at = end_ - position_ < k_container_header
                                ? nullptr
                                : window_.at(position_, k_container_header);
      if (at && is_magic(load_le<uint32_t>(at))) {
        read_container(at);
      } else {
        find_next_container();
      }
    }
    if (headers_ >= k_max_headers)
      add_damage(damage_, position_,
                 format("more than {} fatbin headers; the rest is not read", k_max_headers));
  }

 private:
  void read_container(const std::byte* at) {
    const uint64_t start = position_;
    const uint16_t header_bytes = load_le<uint16_t>(at + 6);
    const uint64_t size = load_le<uint64_t>(at + 8);
    ++headers_;
    if (header_bytes < k_container_header || header_bytes > end_ - start) {
      add_damage(damage_, start,
                 format("a fatbin container with a header of {} bytes", header_bytes));
      position_ = start + 8;
      return;
    }
    uint64_t container_end = end_;
    bool whole = size <= end_ - start - header_bytes;
    if (whole) {
      container_end = start + header_bytes + size;
    } else {
      add_damage(
          damage_, start,
          format("a fatbin container of {} bytes reaches past the end of its section", size));
    }
    uint64_t broken = read_entries(start, start + header_bytes, container_end);
    // Where an entry is broken only the container's own size can still be right.
    if (broken == container_end || (whole && is_boundary(container_end))) {
      position_ = container_end;
    } else {
      position_ = broken;
    }
    position_ += (8 - position_ % 8) % 8;
  }

  // Returns `end`, or where the entries stop making sense, which is always behind the container's
  // header.
  uint64_t read_entries(uint64_t container, uint64_t position, uint64_t end) {
    while (position < end && headers_ < k_max_headers) {
      const std::byte* at =
          end - position < k_entry_header ? nullptr : window_.at(position, k_entry_header);
      if (!at) {
        if (is_padding(position, end)) return end;
        add_damage(damage_, position, "a fatbin ends inside an entry's header");
        return end;
      }
      // A container that claims to be longer than it is: the next one begins where an entry should.
      if (is_magic(load_le<uint32_t>(at))) return position;
      FatbinEntry entry;
      entry.offset = position;
      entry.container = container;
      entry.kind = load_le<uint16_t>(at);
      entry.payload_bytes = load_le<uint64_t>(at + 8);
      entry.minor = load_le<uint16_t>(at + 24);
      entry.major = load_le<uint16_t>(at + 26);
      entry.architecture = load_le<uint32_t>(at + 28);
      entry.flags = load_le<uint64_t>(at + 40);
      const uint64_t uncompressed = load_le<uint64_t>(at + 56);
      entry.full_bytes = uncompressed != 0 ? uncompressed : entry.payload_bytes;
      const uint32_t header_bytes = load_le<uint32_t>(at + 4);
      ++headers_;
      if (entry.kind == 0 || header_bytes < k_entry_header || header_bytes > end - position) {
        add_damage(damage_, position,
                   format("a fatbin entry of kind {} with a header of {} bytes", entry.kind,
                          header_bytes));
        return position;
      }
      visit_(entry);
      position += header_bytes;
      if (entry.payload_bytes > end - position) {
        add_damage(damage_, entry.offset,
                   format("a fatbin entry's payload of {} bytes reaches past its container",
                          entry.payload_bytes));
        return position;
      }
      position += entry.payload_bytes;
    }
    return position;
  }

  bool is_padding(uint64_t position, uint64_t end) {
    for (; position < end; ++position) {
      const std::byte* at = window_.at(position, 1);
      if (!at || *at != std::byte{0}) return false;
    }
    return true;
  }

  bool is_boundary(uint64_t position) {
    position += (8 - position % 8) % 8;
    if (position >= end_) return true;
    const std::byte* at = window_.at(position, 4);
    return at && is_magic(load_le<uint32_t>(at));
  }

  // Zeros are padding between containers; anything else is said once.
  void find_next_container() {
    const uint64_t start = position_;
    bool zeros = true;
    position_ += (8 - position_ % 8) % 8;
    for (; position_ < end_; position_ += 8) {
      size_t size = std::min<uint64_t>(8, end_ - position_);
      const std::byte* at = scan_.at(position_, size);
      if (!at) {
        add_damage(damage_, position_,
                   format("the file ends {} bytes before its fatbin section", end_ - position_));
        position_ = end_;
        return;
      }
      if (size < 8) continue;
      uint64_t value = load_le<uint64_t>(at);
      if (is_magic(static_cast<uint32_t>(value)) && end_ - position_ >= k_container_header) break;
      if (value != 0) zeros = false;
    }
    if (!zeros)
      add_damage(damage_, start,
                 format("{} bytes of a fatbin section are no container", position_ - start));
  }

  Window window_, scan_;  // for headers; for what lies between containers
  uint64_t position_;
  uint64_t end_;
  const std::function<void(const FatbinEntry&)>& visit_;
  std::vector<Damage>& damage_;
  uint64_t headers_ = 0;
};

char suffix_of(uint64_t flags) {
  if (flags & k_fatbin_flag_specific) return 'a';
  return flags & k_fatbin_flag_family ? 'f' : '\0';
}

auto sort_key(const FatbinEntry& entry) {
  bool ptx = entry.code_kind() == CodeKind::ptx;
  return std::make_tuple(entry.code_kind(), entry.architecture, suffix_of(entry.flags),
                         ptx ? entry.major : uint16_t{0}, ptx ? entry.minor : uint16_t{0});
}

}  // namespace

CodeKind FatbinEntry::code_kind() const {
  switch (kind) {
    case k_fatbin_ptx:
    case k_fatbin_relocatable_ptx:
      return CodeKind::ptx;
    case k_fatbin_cubin:
      return CodeKind::cubin;
    case k_fatbin_lto:
      return CodeKind::lto;
    default:
      return CodeKind::other;
  }
}

bool FatbinEntry::is_empty_image() const {
  constexpr uint64_t k_least_image = 512, k_least_kernel = 2048;
  return code_kind() == CodeKind::cubin && full_bytes >= k_least_image &&
         full_bytes < k_least_kernel;
}

std::string FatbinEntry::arch() const {
  std::string out = std::to_string(architecture);
  if (char suffix = suffix_of(flags)) out += suffix;
  return out;
}

std::string FatbinEntry::ptx_isa() const {
  if (code_kind() != CodeKind::ptx) return {};
  return format("{}.{}", major, minor);
}

void walk_fatbin(const ByteSource& source, uint64_t offset, uint64_t size,
                 const std::function<void(const FatbinEntry&)>& visit,
                 std::vector<Damage>& damage) {
  uint64_t file_bytes = source.size_bytes();
  if (offset > file_bytes || size > file_bytes - offset) {
    add_damage(damage, offset,
               format("a fatbin section of {} bytes reaches past the end of the file", size));
    if (offset >= file_bytes) return;
    size = file_bytes - offset;
  }
  Walk(source, offset, offset + size, visit, damage).run();
}

void CodeTable::add(const FatbinEntry& entry, bool relocatable) {
  if (!relocatable) has_executable_ = true;
  if (relocatable && entry.container != last_object_) {
    last_object_ = entry.container;
    ++objects_;
  }
  auto key = sort_key(entry);
  if (last_ >= rows_.size() || sort_key(rows_[last_].entry) != key) {
    last_ = 0;
    while (last_ < rows_.size() && sort_key(rows_[last_].entry) != key) ++last_;
  }
  if (last_ == rows_.size()) {
    if (rows_.size() >= k_max_rows) {
      overflowed_ = true;
      return;
    }
    rows_.push_back({entry, 0, 0});
  }
  ++(relocatable ? rows_[last_].relocatable : rows_[last_].executable);
}

bool CodeTable::is_loadable(const Row& row) const {
  // An object file has relocatable code only: it says what a program linked from it will have.
  if (row.executable > 0 || !has_executable_) return true;
  uint32_t objects_with_it = 0;
  for (const Row& other : rows_) {  // the ISA may differ between objects
    if (other.entry.code_kind() == row.entry.code_kind() &&
        other.entry.architecture == row.entry.architecture &&
        suffix_of(other.entry.flags) == suffix_of(row.entry.flags))
      objects_with_it += other.relocatable;
  }
  return objects_with_it >= objects_;
}

std::vector<DeviceCode> CodeTable::sorted() const {
  std::vector<Row> rows = rows_;
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return sort_key(a.entry) < sort_key(b.entry); });
  std::vector<DeviceCode> out;
  for (const Row& row : rows) {
    out.push_back({row.entry.code_kind(), row.entry.arch(), row.entry.ptx_isa(),
                   row.executable + row.relocatable, is_loadable(row)});
  }
  return out;
}

}  // namespace cufit::formats
