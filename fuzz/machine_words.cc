// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/prose/prose_machine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::MachineWords out =
      cufit::formats::parse_machine_words(cufit::formats::plain_text_lines(text));
  CUFIT_CHECK(out.mentions.size() <= 600, "the reader bounds what it keeps");
  return 0;
}
