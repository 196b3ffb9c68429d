// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/wait_ticket.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto read = cufit::formats::parse_wait_ticket(bytes);
  if (!read) return 0;
  // What was read can be written, and is read the same again.
  const auto written = cufit::formats::make_wait_ticket(*read);
  if (!written || written->size() != cufit::formats::k_ticket_bytes) __builtin_trap();
  const auto again = cufit::formats::parse_wait_ticket(*written);
  if (!again || again->cards.size() != read->cards.size() || again->number != read->number ||
      again->domain != read->domain || again->started != read->started)
    __builtin_trap();
  return 0;
}
