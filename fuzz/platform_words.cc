// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/platform_words.h"

#include <cstddef>
#include <cstdint>

#include "base/result.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const std::string_view system = cufit::formats::implied_system(line);
  CUFIT_CHECK(system.empty() || system == "Windows" || system == "Linux", "two systems are told");
  for (const std::string_view number : cufit::formats::chinese_driver_numbers(line))
    CUFIT_CHECK(!number.empty() && number.data() >= line.data() &&
                    number.data() + number.size() <= line.data() + line.size(),
                "a number stands in the line");
  return 0;
}
