// SPDX-License-Identifier: Apache-2.0
// The frames of the driver child: a driver may have corrupted the child's memory before they were
// written.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/driver/driver_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cufit::host::ChildAnswers answers;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  size_t used = cufit::host::take_frames(bytes, answers);
  if (used > size) __builtin_trap();
  cufit::host::mark_unreached(answers.nvml, cufit::WhyNot::crashed, "call", "note");
  return 0;
}
