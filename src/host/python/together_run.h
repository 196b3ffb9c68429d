// SPDX-License-Identifier: Apache-2.0
// --deep: do the GPUs of this host work together? One environment's Python runs
// python/cufit_together: copies between each pair of GPUs and a sum over all of them, every value
// compared.
#pragma once

#include <string>

#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

struct TogetherOptions {
  std::string python;                             // path of the interpreter
  std::string backend = "nccl", device = "cuda";  // tests: "gloo", "cpu"
  uint32_t ranks = 0;
  uint64_t most_bytes = uint64_t{1} << 30;  // of a sum; the program takes an 8th of the free memory
  double seconds = 120;                     // in all
};

// Never fails as a whole: without an answer, TogetherFacts::sum is missing for that reason.
// Processes that cannot be ended are named in `problems`.
facts::TogetherFacts run_together(const Host& host, const TogetherOptions& options,
                                  std::vector<std::string>& problems);

// The program's text.
const char* together_program();

}  // namespace cufit::host
