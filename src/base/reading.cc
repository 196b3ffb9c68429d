// SPDX-License-Identifier: Apache-2.0
#include "base/reading.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

namespace cufit {
namespace {

constexpr size_t k_longest_kept = 255;
char kept[k_longest_kept + 1];
std::mutex guard;

}  // namespace

void note_reading(std::string_view file) {
  const std::lock_guard<std::mutex> held(guard);
  const size_t size = std::min(file.size(), k_longest_kept);
  for (size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(file[i]);
    // What begins C1 or a mark of terminal_marks.h: nothing is decoded here, where memory ran out.
    const bool obeyed =
        byte < 0x20 || byte == 0x7f || byte == 0xc2 || byte == 0xd8 || byte == 0xe2 || byte == 0xef;
    kept[i] = obeyed ? '?' : file[i];
  }
  kept[size] = '\0';
}

const char* reading_now() { return kept; }

}  // namespace cufit
