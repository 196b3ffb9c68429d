// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/prose/torch_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::TorchMessages out =
      cufit::formats::parse_torch_messages(cufit::formats::plain_text_lines(text));
  CUFIT_CHECK(out.devices.size() <= 64 && out.archs.size() <= 64 && out.driver_cuda.size() <= 64,
              "the reader bounds what it keeps");
  return 0;
}
