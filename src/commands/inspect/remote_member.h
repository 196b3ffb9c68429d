// SPDX-License-Identifier: Apache-2.0
// Shared objects of a wheel on a server: what is large is read from its beginning until its device
// code is seen, as its compressed bytes have to be fetched in order.
#pragma once

#include <cstdint>
#include <string>

#include "formats/archive/zip.h"
#include "formats/binary/elf_start.h"

namespace cufit::commands {

// The sources of one library are compiled for the same list but for a few special ones.
constexpr uint64_t k_enough_containers = 24;

bool is_long(const formats::ZipMember& member);
// As much of the member as shows `enough` fatbins, or as a bound lets.
Result<formats::ElfStart> read_member_start(const formats::ZipFile& zip,
                                            const formats::ZipMember& member,
                                            const std::string& name);

}  // namespace cufit::commands
