// SPDX-License-Identifier: Apache-2.0
// The symbol versions that a library offers (.gnu.version_d), the other side of
// ElfFile::version_needs: which GLIBCXX_3.4.x a libstdc++.so.6 has. Used by the system probe.
//
// Layout (LSB core, symbol versioning; little-endian, equal in 32 and 64 bit), found by DT_VERDEF,
// DT_VERDEFNUM:
//   Elf_Verdef, 20 bytes: u16 version (1), u16 flags, u16 index, u16 aux count, u32 hash, u32 to
//   first aux, u32 to next Elf_Verdaux, 8 bytes: u32 name (offset in .dynstr), u32 to next; the
//   first aux of a verdef is its name
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "formats/damage.h"

namespace cufit::formats {

// Names in file order: {"libstdc++.so.6", "GLIBCXX_3.4", "GLIBCXX_3.4.1", ...}. Error for what is
// no ELF file.
Result<std::vector<std::string>> read_version_definitions(const ByteSource& source,
                                                          std::vector<Damage>& damage);

// Highest number behind `prefix` ("GLIBCXX_"): "3.4.30"; empty when there is none.
std::string highest_version(const std::vector<std::string>& names, std::string_view prefix);

}  // namespace cufit::formats
