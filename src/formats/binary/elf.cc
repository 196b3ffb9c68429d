// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf.h"

#include <algorithm>

#include "base/format.h"
#include "base/version.h"
#include "formats/binary/elf_image.h"
#include "formats/binary/elf_symbols.h"
#include "formats/binary/fatbin.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_path = 1u << 16;  // RPATHs of torch have some 1000 characters
constexpr size_t k_elf_max_name =
    4096;  // of a library or a version; times k_max_versions it must stay small
constexpr uint64_t k_max_needed = 4096;
constexpr uint64_t k_max_versions = 16384;  // of all files together
constexpr uint64_t k_max_note = 1u << 20;
constexpr uint64_t k_flag_no_default_lib = 0x800;  // DF_1_NODEFLIB

class ElfReader {
 public:
  ElfReader(const ByteSource& source, const ElfImage& image, ElfFile& file)
      : source_(source), image_(image), file_(file), window_(source) {}

  void read_dynamic() {
    for (const Segment& segment : image_.segments) {
      if (segment.type == k_segment_interp)
        window_.string(segment.offset, clamp_end(segment.offset, segment.file_size), 4096,
                       file_.interpreter);
    }
    strings_ = image_.string_table();
    if (!strings_) {
      if (!image_.dynamic.empty())
        add_damage(file_.damage, 0, "the dynamic section has no table of strings");
      return;
    }
    for (const DynamicEntry& entry : image_.dynamic) read_entry(entry);
    read_version_needs();
    file_.glibc = highest("GLIBC_");
    file_.glibcxx = highest("GLIBCXX_");
    file_.cxxabi = highest("CXXABI_");
  }

  void read_device_code() {
    CodeTable table;
    bool kernels = false;
    // Each byte of the file is in one section: what overlaps is not read over and over.
    uint64_t left = source_.size_bytes();
    for (const Section& section : image_.sections) {
      const bool relocatable = section.name == "__nv_relfatbin";
      if (!relocatable && section.name != ".nv_fatbin") continue;
      file_.has_fatbin = true;
      if (section.type == k_section_nobits) {
        add_damage(file_.damage, section.offset,
                   format("section `{}` was stripped of its contents", section.name));
        continue;
      }
      if (section.size > left && left < source_.size_bytes()) {
        add_damage(file_.damage, section.offset,
                   "sections of device code overlap; not all of them are read");
        break;
      }
      left -= std::min(left, section.size);
      walk_fatbin(
          source_, section.offset, section.size,
          [&](const FatbinEntry& entry) {
            table.add(entry, relocatable);
            kernels = kernels || !entry.is_empty_image();
          },
          file_.damage);
    }
    if (table.overflowed())
      add_damage(file_.damage, 0,
                 "more kinds of device code than any real file has; not all are listed");
    file_.device_code = table.sorted();
    file_.only_empty_images = !file_.device_code.empty() && !kernels;
  }

  // ELF note: u32 name size, u32 description size, u32 type, then both padded to 4 bytes.
  void read_compat_note() {
    const Section* section = image_.find_section(".note.cuda.fwd_compatibility");
    if (!section || section->type == k_section_nobits) return;
    Result<std::string> note = source_.read_exact(section->offset, section->size, k_max_note);
    if (!note || note->size() < 12) {
      add_damage(file_.damage, section->offset,
                 "the note on forward compatibility could not be read");
      return;
    }
    uint64_t name = load_le<uint32_t>(note->data()), text = load_le<uint32_t>(note->data() + 4);
    uint64_t start = 12 + (name + 3) / 4 * 4;
    if (start > note->size() || text > note->size() - start) {
      add_damage(file_.damage, section->offset,
                 "the note on forward compatibility reaches past its section");
      return;
    }
    file_.compat_note = note->substr(start, text);
    while (!file_.compat_note.empty() && file_.compat_note.back() == '\0')
      file_.compat_note.pop_back();
  }

 private:
  static uint64_t clamp_end(uint64_t offset, uint64_t size) {
    return size > UINT64_MAX - offset ? UINT64_MAX : offset + size;
  }

  std::string dynamic_string(uint64_t value, const char* what, size_t limit = k_elf_max_name) {
    std::string text;
    bool ok = value < strings_->size &&
              window_.string(strings_->offset + value, clamp_end(strings_->offset, strings_->size),
                             limit, text);
    if (!ok) {
      add_damage(file_.damage, strings_->offset,
                 format("the string of {} (at {} of the string table) is broken", what, value));
      text.clear();
    }
    return text;
  }

  static std::vector<std::string> split_path(const std::string& text) {
    std::vector<std::string> out;
    if (text.empty())
      return out;  // glibc ignores an empty RPATH; an empty element is the current directory
    for (std::string_view part : split(text, ':')) out.emplace_back(part);
    return out;
  }

  void read_entry(const DynamicEntry& entry) {
    switch (entry.tag) {
      case k_tag_needed:
        if (file_.needed.size() < k_max_needed) {
          std::string name = dynamic_string(entry.value, "DT_NEEDED");
          if (!name.empty()) file_.needed.push_back(std::move(name));
        } else {
          add_damage(file_.damage, 0,
                     format("more than {} needed libraries; the rest is not listed", k_max_needed));
        }
        break;
      case k_tag_soname:
        file_.soname = dynamic_string(entry.value, "DT_SONAME");
        break;
      case k_tag_rpath:
        file_.rpath = split_path(dynamic_string(entry.value, "DT_RPATH", k_max_path));
        break;
      case k_tag_runpath:
        file_.runpath = split_path(dynamic_string(entry.value, "DT_RUNPATH", k_max_path));
        break;
      case k_tag_flags_1:
        file_.no_default_lib = (entry.value & k_flag_no_default_lib) != 0;
        break;
      default:
        break;
    }
  }

  // Elf_Verneed: u16 version, u16 count, u32 file, u32 aux, u32 next. Elf_Vernaux: u32 hash, u16
  // flags, u16 other, u32 name, u32 next. The same in both classes.
  void read_version_needs() {
    std::optional<uint64_t> address = image_.dynamic_value(k_tag_verneed);
    if (!address) return;
    std::optional<FileRange> range = image_.find_address(*address);
    if (!range) {
      add_damage(file_.damage, 0, "the table of needed versions lies outside every segment");
      return;
    }
    uint64_t files = std::min(image_.dynamic_value(k_tag_verneednum).value_or(0), k_max_needed);
    uint64_t left = k_max_versions;
    uint64_t at = 0;  // within the range
    for (uint64_t i = 0; i < files; ++i) {
      const std::byte* need = at <= range->size ? window_.at(range->offset + at, 16) : nullptr;
      if (!need) {
        add_damage(file_.damage, range->offset,
                   format("the table of needed versions ends at file {} of {}", i, files));
        return;
      }
      uint32_t count = load_le<uint16_t>(need + 2);
      uint32_t name = load_le<uint32_t>(need + 4), aux = load_le<uint32_t>(need + 8),
               next = load_le<uint32_t>(need + 12);
      VersionNeed out;
      out.file = dynamic_string(name, "a needed version's file");
      uint64_t aux_at = at + aux;
      for (uint32_t j = 0; j < count && left > 0; ++j, --left) {
        const std::byte* version =
            aux_at <= range->size ? window_.at(range->offset + aux_at, 16) : nullptr;
        if (!version) {
          add_damage(file_.damage, range->offset,
                     format("the versions needed of `{}` are cut off", out.file));
          break;
        }
        uint32_t version_name = load_le<uint32_t>(version + 8),
                 version_next = load_le<uint32_t>(version + 12);
        out.versions.push_back(dynamic_string(version_name, "a needed version"));
        if (version_next == 0) break;
        aux_at += version_next;
      }
      file_.version_needs.push_back(std::move(out));
      if (next == 0) return;
      at += next;
    }
  }

  // "2.28" of GLIBC_2.2.5, GLIBC_2.28, GLIBC_PRIVATE, GLIBC_ABI_DT_RELR.
  std::string highest(std::string_view prefix) const {
    std::optional<Version> best;
    for (const VersionNeed& need : file_.version_needs) {
      for (const std::string& text : need.versions) {
        if (!starts_with(text, prefix)) continue;
        std::optional<Version> version =
            parse_version(std::string_view(text).substr(prefix.size()));
        if (version && (!best || *best < *version)) best = std::move(version);
      }
    }
    return best ? best->text() : std::string();
  }

  const ByteSource& source_;
  const ElfImage& image_;
  ElfFile& file_;
  Window window_;
  std::optional<FileRange> strings_;
};

}  // namespace

bool is_elf(const ByteSource& source) {
  std::byte magic[4];
  Result<size_t> got = source.read(0, magic);
  return got && *got == 4 && load_le<uint32_t>(magic) == 0x464c457f;
}

Result<ElfFile> read_elf(const ByteSource& source, const ElfOptions& options) {
  ElfFile file;
  CUFIT_TRY(image, ElfImage::open(source, file.damage));
  file.is_64bit = image.is_64bit;
  file.machine = image.machine;
  file.type = image.type;
  ElfReader reader(source, image, file);
  reader.read_dynamic();
  reader.read_compat_note();
  if (options.device_code) reader.read_device_code();
  if (options.abi) file.cxx11_abi = find_cxx11_abi(source, image);
  if (options.symbols) file.undefined_torch = undefined_torch_symbols(source, image, file.damage);
  return file;
}

}  // namespace cufit::formats
