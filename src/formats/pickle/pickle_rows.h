// SPDX-License-Identifier: Apache-2.0
// The keys of the dicts that come one after another in a trace, as the bytes that stand for them.
// Used by pickle_machine.h only.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "formats/pickle/pickle.h"

namespace cufit::formats {

constexpr size_t k_row_keys = 24;     // a trace entry has at most 12
constexpr size_t k_row_items = 1024;  // of a list in a row; longer ones take the usual way

struct PickleRowKeys {
  struct Key {
    uint64_t bytes, mask;  // of the GET that the key is
    uint8_t size;
  };
  std::array<Key, k_row_keys> keys;
  std::array<PickleValue, k_row_keys> names;
  size_t count = 0;       // 0: none known
  uint32_t to_skip = 0;   // dicts before the next attempt to learn them
  uint32_t failures = 0;  // of such attempts in a row
  bool off = false;       // a memo entry was written twice, so that bytes may change their meaning
};

}  // namespace cufit::formats
