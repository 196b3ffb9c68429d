// SPDX-License-Identifier: Apache-2.0
// What `cufit pack` reads: JOBS.toml and the JSON of `cufit fit`. Both come from outside: bounds on
// every number and text, errors with file and place.
//
//   [[job]]
//   name = "train-a"              # else the file's or "job 1"
//   size = "20G"                  # that PyTorch's allocator takes; context and libraries are added
//   total = "21G"                 # or all of the process, as nvidia-smi shows it
//   prediction = "a.json"         # or an answer of `cufit fit --json`
//   snapshot = "a.pickle.gz"      # or a memory snapshot of a real run
//   fit = true                    # or let `cufit fit` trace the command
//   command = ["python", "a.py"]  # or one text: "python a.py"
//   count = 4                     # so many alike
//   gpus = 2                      # of one machine, each with that size (`cufit fleet plan`)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

inline constexpr size_t k_pack_jobs_most_bytes = size_t{1} << 20;
inline constexpr size_t k_pack_jobs_most = 256;  // counted with `count`
inline constexpr uint32_t k_most_gpus_of_job = 64;

struct JobEntry {
  uint32_t line = 0;
  std::string name;                     // empty: none
  std::optional<uint64_t> size, total;  // bytes
  std::string prediction, snapshot;     // paths as written
  bool fit = false;
  std::vector<std::string> command;  // words
  uint32_t count = 1, gpus = 1;
};

// Error{malformed} with file and line for an unknown key, a value that is none, a job without a size
// or with several, more than `most` jobs.
Result<std::vector<JobEntry>> parse_pack_jobs(std::string_view text, const std::string& file,
                                              size_t most = k_pack_jobs_most);

inline constexpr size_t k_fit_json_most_bytes = size_t{32} << 20;

// Of an answer cufit.fit/1.
struct FitAnswerFacts {
  std::string program;               // as it was typed, else names of files
  uint64_t peak_reserved_upper = 0;  // safe upper value, of no card
  struct OnGpu {
    std::string name;
    std::optional<uint64_t> peak_reserved_upper;  // nullopt: not predicted for it
    uint64_t outside = 0;                         // context and libraries
    bool runs_out = false;                        // even alone
  };
  std::vector<OnGpu> gpus;
};
// Error{malformed} where it is no such answer, Error{usage} where it says that there is none.
Result<FitAnswerFacts> parse_fit_answer(std::string_view text, const std::string& file);

// A command line as a shell would take it apart, quotes and backslashes included; nothing where it
// needs a shell (pipes, variables, several commands) or a quote is open.
std::optional<std::vector<std::string>> command_words(std::string_view text);

}  // namespace cufit::formats
