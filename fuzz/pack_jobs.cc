// SPDX-License-Identifier: Apache-2.0
// JOBS.toml, the JSON of `cufit fit` and command lines: any text; what was read is within the bounds.
#include "formats/model/pack_jobs.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto jobs = parse_pack_jobs(text, "fuzz")) {
    size_t all = 0;
    for (const JobEntry& job : *jobs) {
      all += job.count;
      if (!job.size && !job.total && !job.fit && job.prediction.empty() && job.snapshot.empty())
        std::abort();
      for (const std::string& word : job.command)
        if (word.find('\0') != std::string::npos) std::abort();
    }
    if (jobs->empty() || all > k_pack_jobs_most) std::abort();
  }
  if (const auto answer = parse_fit_answer(text, "fuzz"))
    if (answer->peak_reserved_upper == 0) std::abort();
  (void)command_words(text);
  return 0;
}
