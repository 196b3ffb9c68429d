// SPDX-License-Identifier: Apache-2.0
// What each byte of a pickle may be (Python's Lib/pickletools.py, protocols 0 to 5). Used by
// pickle.cc only. Whatever could call code, import a name or reach outside the file is refused.
#pragma once

#include <array>
#include <cstdint>

namespace cufit::formats {

struct PickleOpcode {
  const char* name = nullptr;  // null: no opcode of any protocol
  bool allowed = false;
  uint8_t fixed_bytes = 0;  // of its argument, without what a length in it announces
};

const std::array<PickleOpcode, 256>& pickle_opcodes();

}  // namespace cufit::formats
