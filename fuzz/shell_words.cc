// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/prose/shell_words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::ShellWords out =
      cufit::formats::parse_shell_words(cufit::formats::plain_text_lines(text));
  CUFIT_CHECK(
      out.variables.size() <= 500 && out.containers.size() <= 50 && out.libraries.size() <= 500,
      "the reader bounds what it keeps");
  return 0;
}
