// SPDX-License-Identifier: Apache-2.0
// `cufit bench`: which environment is faster on this card, and by how much beyond the noise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct BenchRequest {
  std::vector<std::string> env;  // folders, classes of a lock
  std::vector<std::string> workload;
  std::vector<std::string> precision;
  std::optional<std::string> batch;  // a number or "auto"
  std::string device = "0";          // CUDA's number, or "cpu"
  std::string rounds = "24";
  std::string time = "60";              // seconds of a case
  std::string timeout = "180";          // for any one answer
  std::optional<std::string> measured;  // file of the result
  std::optional<std::string> html;
  bool json = false;
};

std::span<const Option> bench_options();
// k_ok: all that was asked for was measured. k_findings: some environment was not.
int run_bench(const Context& context, const BenchRequest& request);

}  // namespace cufit::commands
