// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/prose/text_decoder.h"

// The size of the pieces must not matter.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string whole, pieces;
  cufit::formats::TextDecoder one, many;
  one.add(bytes, whole);
  one.finish(whole);
  for (size_t at = 0; at < size; at += 3) many.add(bytes.substr(at, 3), pieces);
  many.finish(pieces);
  CUFIT_CHECK(whole == pieces, "pieces of any size give the same text");
  return 0;
}
