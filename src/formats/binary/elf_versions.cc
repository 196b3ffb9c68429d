// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_versions.h"

#include <optional>

#include "base/format.h"
#include "base/version.h"
#include "formats/binary/elf_image.h"

namespace cufit::formats {
namespace {

constexpr uint64_t k_tag_verdef = 0x6ffffffc, k_tag_verdefnum = 0x6ffffffd;
constexpr uint64_t k_max_definitions = 4096;  // glibc has about 40, libstdc++ about 60
constexpr size_t k_elf_versions_max_name = 256;
constexpr size_t k_verdef_bytes = 20, k_verdaux_bytes = 8;

}  // namespace

Result<std::vector<std::string>> read_version_definitions(const ByteSource& source,
                                                          std::vector<Damage>& damage) {
  CUFIT_TRY(image, ElfImage::open(source, damage));
  std::vector<std::string> names;
  std::optional<uint64_t> address = image.dynamic_value(k_tag_verdef);
  std::optional<FileRange> strings = image.string_table();
  if (!address || !strings) return names;
  std::optional<FileRange> place = image.find_address(*address);
  if (!place) {
    add_damage(damage, 0, "the version definitions lie outside every segment");
    return names;
  }
  uint64_t count = image.dynamic_value(k_tag_verdefnum).value_or(k_max_definitions);
  if (count > k_max_definitions) count = k_max_definitions;
  Window definitions(source), auxiliary(source), texts(source);
  uint64_t at = place->offset;
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* definition = definitions.at(at, k_verdef_bytes);
    if (!definition) {
      add_damage(damage, at, "a version definition reaches past the end");
      break;
    }
    uint32_t to_aux = load_le<uint32_t>(definition + 12),
             to_next = load_le<uint32_t>(definition + 16);
    const std::byte* aux = auxiliary.at(at + to_aux, k_verdaux_bytes);
    uint32_t name = aux ? load_le<uint32_t>(aux) : UINT32_MAX;
    std::string text;
    if (name >= strings->size ||
        !texts.string(strings->offset + name, strings->offset + strings->size,
                      k_elf_versions_max_name, text)) {
      add_damage(damage, at, "a version definition has no name");
      break;
    }
    names.push_back(std::move(text));
    if (to_next == 0) break;
    at += to_next;
  }
  return names;
}

std::string highest_version(const std::vector<std::string>& names, std::string_view prefix) {
  std::optional<Version> best;
  for (const std::string& name : names) {
    if (!starts_with(name, prefix)) continue;
    std::optional<Version> version = parse_version(std::string_view(name).substr(prefix.size()));
    if (version && (!best || *best < *version)) best = version;
  }
  return best ? best->text() : std::string();
}

}  // namespace cufit::formats
