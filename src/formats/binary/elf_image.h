// SPDX-License-Identifier: Apache-2.0
// The skeleton of an ELF file: header, program headers, section headers, dynamic section, each
// decoded to one form for 32 and 64 bit. Used by elf.cc and elf_symbols.cc only; everyone else
// takes ElfFile (formats/binary/elf.h).
//
// The dynamic linker's view (program headers) decides; section headers may be stripped and serve
// only what has no other address: the fatbin sections and CUDA's notes. Layouts: System V ABI,
// gABI 4.1 chapter 4 and 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/binary/byte_window.h"

namespace cufit::formats {

struct Segment {
  uint32_t type = 0;
  uint64_t offset = 0, address = 0, file_size = 0, memory_size = 0;
};

struct Section {
  std::string name;
  uint32_t type = 0;
  uint64_t address = 0, offset = 0, size = 0;
  uint32_t link = 0, info = 0;
};

struct DynamicEntry {
  uint64_t tag = 0, value = 0;
};

// Part of the file by offset.
struct FileRange {
  uint64_t offset = 0, size = 0;
};

class ElfImage {
 public:
  // Error for what is no ELF, is big-endian, or ends inside its header; damage for the rest.
  static Result<ElfImage> open(const ByteSource& source, std::vector<Damage>& damage);

  bool is_64bit = false;
  uint16_t type = 0, machine = 0;
  uint64_t file_bytes = 0;
  std::vector<Segment> segments;
  std::vector<Section> sections;
  std::vector<DynamicEntry> dynamic;  // up to DT_NULL

  std::optional<uint64_t> dynamic_value(uint64_t tag) const;  // first entry with that tag
  // File range that backs `address`, to the end of its segment or of the file.
  std::optional<FileRange> find_address(uint64_t address) const;
  const Section* find_section(std::string_view name) const;
  // .dynstr by DT_STRTAB and DT_STRSZ, cut at the end of its segment; nullopt without one.
  std::optional<FileRange> string_table() const;
};

// Section types and dynamic tags that readers need; numbers of the gABI and of glibc's <elf.h>.
constexpr uint32_t k_segment_load = 1, k_segment_dynamic = 2, k_segment_interp = 3,
                   k_segment_note = 4;
constexpr uint32_t k_section_nobits = 8, k_section_dynsym = 11;
constexpr uint64_t k_tag_needed = 1, k_tag_hash = 4, k_tag_strtab = 5, k_tag_symtab = 6,
                   k_tag_strsz = 10, k_tag_soname = 14, k_tag_rpath = 15, k_tag_runpath = 29,
                   k_tag_gnu_hash = 0x6ffffef5, k_tag_flags_1 = 0x6ffffffb,
                   k_tag_verneed = 0x6ffffffe, k_tag_verneednum = 0x6fffffff;
constexpr uint16_t k_machine_cuda = 190;

}  // namespace cufit::formats
