// SPDX-License-Identifier: Apache-2.0
#include "facts/together_answer.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> left;
  const auto facts = cufit::facts::parse_together_answer(
      {reinterpret_cast<const char*>(data), size}, "python", left);
  return facts && facts->pairs.size() + facts->via.size() + left.size() == SIZE_MAX;
}
