// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_image.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::formats {
namespace {

// Real files have about 15 segments, 50 sections and 60 dynamic entries; ET_REL files with
// -ffunction-sections have some ten thousand sections.
constexpr uint64_t k_max_segments = 4096;
constexpr uint64_t k_max_sections = 1u << 17;
constexpr uint64_t k_max_dynamic = 1u << 16;
constexpr size_t k_max_section_name = 256;

struct Tables {
  uint64_t segments = 0, sections = 0;  // file offsets
  uint64_t segment_count = 0, section_count = 0;
  uint32_t segment_bytes = 0, section_bytes = 0;  // of one entry
  uint32_t name_section = 0;
};

Tables read_header(const std::byte* at, ElfImage& image) {
  Tables tables;
  image.type = load_le<uint16_t>(at + 16);
  image.machine = load_le<uint16_t>(at + 18);
  // From e_phoff on the two classes differ by the width of three addresses.
  size_t sizes = 0;  // offset of e_phentsize
  if (image.is_64bit) {
    tables.segments = load_le<uint64_t>(at + 32);
    tables.sections = load_le<uint64_t>(at + 40);
    sizes = 54;
  } else {
    tables.segments = load_le<uint32_t>(at + 28);
    tables.sections = load_le<uint32_t>(at + 32);
    sizes = 42;
  }
  tables.segment_bytes = load_le<uint16_t>(at + sizes);
  tables.segment_count = load_le<uint16_t>(at + sizes + 2);
  tables.section_bytes = load_le<uint16_t>(at + sizes + 4);
  tables.section_count = load_le<uint16_t>(at + sizes + 6);
  tables.name_section = load_le<uint16_t>(at + sizes + 8);
  return tables;
}

struct RawSection {
  Section section;
  uint32_t name = 0;
};

RawSection decode_section(const std::byte* at, bool is_64bit) {
  RawSection raw;
  raw.name = load_le<uint32_t>(at);
  raw.section.type = load_le<uint32_t>(at + 4);
  if (is_64bit) {
    raw.section.address = load_le<uint64_t>(at + 16);
    raw.section.offset = load_le<uint64_t>(at + 24);
    raw.section.size = load_le<uint64_t>(at + 32);
    raw.section.link = load_le<uint32_t>(at + 40);
    raw.section.info = load_le<uint32_t>(at + 44);
  } else {
    raw.section.address = load_le<uint32_t>(at + 12);
    raw.section.offset = load_le<uint32_t>(at + 16);
    raw.section.size = load_le<uint32_t>(at + 20);
    raw.section.link = load_le<uint32_t>(at + 24);
    raw.section.info = load_le<uint32_t>(at + 28);
  }
  return raw;
}

Segment decode_segment(const std::byte* at, bool is_64bit) {
  Segment segment;
  segment.type = load_le<uint32_t>(at);
  if (is_64bit) {
    segment.offset = load_le<uint64_t>(at + 8);
    segment.address = load_le<uint64_t>(at + 16);
    segment.file_size = load_le<uint64_t>(at + 32);
    segment.memory_size = load_le<uint64_t>(at + 40);
  } else {
    segment.offset = load_le<uint32_t>(at + 4);
    segment.address = load_le<uint32_t>(at + 8);
    segment.file_size = load_le<uint32_t>(at + 16);
    segment.memory_size = load_le<uint32_t>(at + 20);
  }
  return segment;
}

// The counts of the header are 16 bits wide; larger ones are in section 0 (gABI, "e_shnum",
// "PN_XNUM").
void read_large_counts(Window& window, bool is_64bit, Tables& tables) {
  constexpr uint64_t k_in_section_0 = 0xffff;
  if (tables.sections == 0) return;
  if (tables.section_count != 0 && tables.segment_count != k_in_section_0 &&
      tables.name_section != k_in_section_0)
    return;
  const std::byte* at = window.at(tables.sections, is_64bit ? 64 : 40);
  if (!at) return;
  RawSection first = decode_section(at, is_64bit);
  if (tables.section_count == 0) tables.section_count = first.section.size;
  if (tables.segment_count == k_in_section_0) tables.segment_count = first.section.info;
  if (tables.name_section == k_in_section_0) tables.name_section = first.section.link;
}

void read_segments(Window& window, Tables tables, ElfImage& image, std::vector<Damage>& damage) {
  if (tables.segments == 0 || tables.segment_count == 0) return;
  size_t bytes = image.is_64bit ? 56 : 32;
  if (tables.segment_bytes < bytes) {
    add_damage(damage, tables.segments,
               format("program headers of {} bytes are too small", tables.segment_bytes));
    return;
  }
  if (tables.segment_count > k_max_segments) {
    add_damage(damage, tables.segments,
               format("{} program headers; only the first {} are read", tables.segment_count,
                      k_max_segments));
    tables.segment_count = k_max_segments;
  }
  for (uint64_t i = 0; i < tables.segment_count; ++i) {
    uint64_t offset = tables.segments + i * tables.segment_bytes;
    const std::byte* at = offset < tables.segments ? nullptr : window.at(offset, bytes);
    if (!at) {
      add_damage(damage, offset, format("the file ends inside program header {}", i));
      return;
    }
    image.segments.push_back(decode_segment(at, image.is_64bit));
  }
}

void read_sections(Window& window, Tables tables, ElfImage& image, std::vector<Damage>& damage) {
  if (tables.sections == 0 || tables.section_count == 0) return;
  size_t bytes = image.is_64bit ? 64 : 40;
  if (tables.section_bytes < bytes) {
    add_damage(damage, tables.sections,
               format("section headers of {} bytes are too small", tables.section_bytes));
    return;
  }
  if (tables.section_count > k_max_sections) {
    add_damage(damage, tables.sections,
               format("{} section headers; only the first {} are read", tables.section_count,
                      k_max_sections));
    tables.section_count = k_max_sections;
  }
  std::vector<uint32_t> names;
  for (uint64_t i = 0; i < tables.section_count; ++i) {
    uint64_t offset = tables.sections + i * tables.section_bytes;
    const std::byte* at = offset < tables.sections ? nullptr : window.at(offset, bytes);
    if (!at) {
      add_damage(damage, offset, format("the file ends inside section header {}", i));
      break;
    }
    RawSection raw = decode_section(at, image.is_64bit);
    image.sections.push_back(std::move(raw.section));
    names.push_back(raw.name);
  }
  if (tables.name_section >= image.sections.size()) {
    if (tables.name_section != 0)
      add_damage(damage, tables.sections, "the table of section names is missing");
    return;
  }
  const FileRange table{image.sections[tables.name_section].offset,
                        image.sections[tables.name_section].size};
  uint64_t end = table.size > UINT64_MAX - table.offset ? UINT64_MAX : table.offset + table.size;
  for (size_t i = 1; i < names.size(); ++i) {
    std::string name;
    if (names[i] >= table.size ||
        !window.string(table.offset + names[i], end, k_max_section_name, name)) {
      add_damage(damage, table.offset, format("the name of section {} could not be read", i));
      continue;
    }
    image.sections[i].name = std::move(name);
  }
}

void read_dynamic(Window& window, ElfImage& image, std::vector<Damage>& damage) {
  auto segment = std::find_if(image.segments.begin(), image.segments.end(),
                              [](const Segment& s) { return s.type == k_segment_dynamic; });
  if (segment == image.segments.end()) return;
  size_t bytes = image.is_64bit ? 16 : 8;
  uint64_t count = std::min<uint64_t>(segment->file_size / bytes, k_max_dynamic);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t offset = segment->offset + i * bytes;
    const std::byte* at = offset < segment->offset ? nullptr : window.at(offset, bytes);
    if (!at) {
      add_damage(damage, offset, format("the file ends inside the dynamic section (entry {})", i));
      return;
    }
    DynamicEntry entry;
    if (image.is_64bit) {
      entry = {load_le<uint64_t>(at), load_le<uint64_t>(at + 8)};
    } else {
      entry = {load_le<uint32_t>(at), load_le<uint32_t>(at + 4)};
    }
    if (entry.tag == 0) return;
    image.dynamic.push_back(entry);
  }
}

}  // namespace

Result<ElfImage> ElfImage::open(const ByteSource& source, std::vector<Damage>& damage) {
  Window window(source);
  const std::byte* at = window.at(0, 16);
  if (!at || load_le<uint32_t>(at) != 0x464c457f)  // "\x7fELF"
    return fail(Code::malformed, format("`{}`: not an ELF file (byte 0)", source.name()));
  int elf_class = static_cast<int>(at[4]), order = static_cast<int>(at[5]);
  if (elf_class != 1 && elf_class != 2)
    return fail(Code::malformed,
                format("`{}`: unknown ELF class {} (byte 4)", source.name(), elf_class));
  if (order != 1) {
    return order == 2
               ? fail(Code::unsupported,
                      format("`{}`: a big-endian ELF file (byte 5); CUDA has none", source.name()))
               : fail(Code::malformed,
                      format("`{}`: unknown ELF byte order {} (byte 5)", source.name(), order));
  }
  ElfImage image;
  image.is_64bit = elf_class == 2;
  image.file_bytes = source.size_bytes();
  size_t header_bytes = image.is_64bit ? 64 : 52;
  at = window.at(0, header_bytes);
  if (!at) {
    return fail(Code::malformed, format("`{}`: ends inside the ELF header ({} of {} bytes)",
                                        source.name(), source.size_bytes(), header_bytes));
  }
  Tables tables = read_header(at, image);
  read_large_counts(window, image.is_64bit, tables);
  read_segments(window, tables, image, damage);
  read_sections(window, tables, image, damage);
  read_dynamic(window, image, damage);
  return image;
}

std::optional<uint64_t> ElfImage::dynamic_value(uint64_t tag) const {
  for (const DynamicEntry& entry : dynamic)
    if (entry.tag == tag) return entry.value;
  return std::nullopt;
}

std::optional<FileRange> ElfImage::find_address(uint64_t address) const {
  for (const Segment& segment : segments) {
    if (segment.type != k_segment_load || address < segment.address) continue;
    uint64_t into = address - segment.address;
    if (into >= segment.file_size || segment.offset >= file_bytes ||
        into >= file_bytes - segment.offset)
      continue;
    const uint64_t offset = segment.offset + into;
    return FileRange{offset, std::min(segment.file_size - into, file_bytes - offset)};
  }
  return std::nullopt;
}

const Section* ElfImage::find_section(std::string_view name) const {
  for (const Section& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

std::optional<FileRange> ElfImage::string_table() const {
  std::optional<uint64_t> address = dynamic_value(k_tag_strtab);
  if (!address) return std::nullopt;
  std::optional<FileRange> range = find_address(*address);
  if (!range) return std::nullopt;
  if (std::optional<uint64_t> size = dynamic_value(k_tag_strsz))
    range->size = std::min(range->size, *size);
  return range;
}

}  // namespace cufit::formats
