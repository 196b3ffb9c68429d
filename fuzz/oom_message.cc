// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "explain/oom_clues.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto lines =
      cufit::formats::plain_text_lines(std::string_view(reinterpret_cast<const char*>(data), size));
  const auto messages = cufit::formats::parse_oom_messages(lines);
  CUFIT_CHECK(messages.size() <= 16, "the reader bounds what it keeps");
  for (const cufit::formats::OomMessage& message : messages) cufit::explain::oom_clues(message);
  return 0;
}
