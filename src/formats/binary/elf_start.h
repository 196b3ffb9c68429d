// SPDX-License-Identifier: Apache-2.0
// The device code of a shared object of which only the beginning is at hand: a member of a wheel on
// a server, whose section table stands behind gigabytes. Fatbins are found by their magic.
#pragma once

#include <string_view>

#include "formats/binary/elf.h"

namespace cufit::formats {

struct ElfStart {
  ElfFile file;             // of its device code alone; what lacks may lie behind what was seen
  uint64_t containers = 0;  // fatbins that were found
  uint64_t seen_bytes = 0;  // of the beginning
};
// Error{malformed}: no ELF file. `whole_bytes`: of the file.
Result<ElfStart> read_elf_start(std::string_view start, uint64_t whole_bytes,
                                const std::string& name);

}  // namespace cufit::formats
