// SPDX-License-Identifier: Apache-2.0
// `cufit doctor`: will PyTorch run on each GPU of this machine with each environment, and if not,
// which link is broken?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "report/health.h"

namespace cufit::commands {

enum class FailOn { note, unknown, warning, error, never };

struct DoctorRequest {
  std::vector<std::string> env;     // folders; empty: those that are found
  std::optional<std::string> from;  // a recording, or other facts, instead of this machine
  std::optional<std::string> record;
  bool deep = false;
  std::vector<std::string> gpus;  // assumed instead of the machine's
  std::optional<std::string> driver;
  bool json = false;
  std::optional<std::string> html;
  bool fix = false;  // the whole sequence of steps as a script, in place of the report
  FailOn fail_on = FailOn::error;
  bool verbose = false;
  // --fast: may this node be given new work?
  bool fast = false;
  std::optional<std::string> judged_gpus;  // "0,3": these alone
  std::optional<std::string> expect_gpus;
  std::optional<std::string> policy;  // a cufit.toml with [health]
  std::optional<report::ExitStyle> exit_style;
};

std::span<const Option> doctor_options();
int run_doctor(const Context& context, const DoctorRequest& request);

}  // namespace cufit::commands
