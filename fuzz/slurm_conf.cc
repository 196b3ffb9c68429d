// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/slurm_conf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)cufit::formats::parse_slurm_node(text, "gpu007");
  (void)cufit::formats::is_in_hostlist(text, "gpu007");
  size_t bytes = 0;
  for (const cufit::formats::SlurmPiece& piece : cufit::formats::slurm_pieces(text))
    bytes += piece.text.size();
  if (bytes > size) __builtin_trap();
  return 0;
}
