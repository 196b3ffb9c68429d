// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/remote_member.h"

#include <algorithm>

namespace cufit::commands {
namespace {

constexpr uint64_t k_whole_compressed = 16u << 20;  // fetched as a whole up to here
// Unpacked. torch's libtorch_cuda.so has its fatbins behind about 100 MiB of other code.
constexpr uint64_t k_remote_member_steps[] = {8u << 20, 32u << 20, 96u << 20, 192u << 20};

}  // namespace

bool is_long(const formats::ZipMember& member) {
  return member.compressed_bytes > k_whole_compressed;
}

Result<formats::ElfStart> read_member_start(const formats::ZipFile& zip,
                                            const formats::ZipMember& member,
                                            const std::string& name) {
  formats::ElfStart out;
  for (const uint64_t step : k_remote_member_steps) {
    const uint64_t size = std::min(step, member.size_bytes);
    Result<std::string> bytes = zip.read_start(member, static_cast<size_t>(size));
    if (!bytes && out.file.type != 0) break;  // the bound: what was seen before stays
    if (!bytes) return bytes.error();
    CUFIT_TRY(read, formats::read_elf_start(*bytes, member.size_bytes, name));
    out = std::move(read);
    if (out.containers >= k_enough_containers || size == member.size_bytes) break;
  }
  return out;
}

}  // namespace cufit::commands
