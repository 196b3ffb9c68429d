// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/system/nvidia_smi.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::NvidiaSmi smi =
      cufit::formats::parse_nvidia_smi(cufit::formats::plain_text_lines(text));
  CUFIT_CHECK(smi.runs.size() <= 32, "the reader bounds what it keeps");
  for (const cufit::formats::SmiRun& run : smi.runs)
    CUFIT_CHECK(run.gpus.size() <= 128 && run.processes.size() <= 512, "and of each run");
  return 0;
}
