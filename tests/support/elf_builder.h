// SPDX-License-Identifier: Apache-2.0
// Builds small ELF files and fatbins as bytes, so that a test states what a file holds instead of
// shipping one. The layout is that of a linker's output in miniature: header, program headers, one
// loadable segment with the dynamic tables at address k_base, sections, section names.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cufit::tests {

struct DynamicSymbol {
  std::string name;
  bool defined = true;
  bool weak = false;
};

enum class HashStyle { gnu, old, none };

struct ElfSpec {
  bool is_64bit = true;
  uint16_t machine = 62, type = 3;
  std::string soname, rpath, runpath, interpreter;
  std::vector<std::string> needed;
  bool no_default_lib = false;
  std::vector<std::pair<std::string, std::vector<std::string>>> version_needs;
  std::vector<DynamicSymbol> symbols;
  HashStyle hash = HashStyle::gnu;
  std::vector<std::pair<std::string, std::string>> sections;  // name, contents
  bool strip_section_headers = false;
};

std::string build_elf(const ElfSpec& spec);

struct EntrySpec {
  uint16_t kind = 2;
  uint32_t arch = 80;
  uint64_t flags = 0x11;
  uint16_t major = 1, minor = 8;
  std::string payload = std::string(24, 'x');
  std::string name;  // source name, stored between header and payload
};

std::string build_entry(const EntrySpec& spec);
std::string build_container(const std::vector<EntrySpec>& entries, uint32_t magic = 0xBA55ED50);

// {"cubin", "90a"}, {"ptx", "120", 9, 0}
EntrySpec cubin(uint32_t arch, char suffix = '\0');
EntrySpec ptx(uint32_t arch, uint16_t major, uint16_t minor, char suffix = '\0');

void put(std::string& out, size_t at, uint64_t value,
         size_t bytes);  // little endian, over what is there

}  // namespace cufit::tests
