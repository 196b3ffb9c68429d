// SPDX-License-Identifier: Apache-2.0
// All readers of a pasted text together, and what is made of their claims.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "facts/text_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::facts::Facts facts =
      cufit::facts::facts_from_text(cufit::formats::plain_text_lines(text), "text");
  CUFIT_CHECK(facts.origin == "text" && facts.envs.size() <= 1, "one text, one environment");
  return 0;
}
