// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit fit` on the screen, and as `--html FILE`.
#pragma once

#include <optional>
#include <string>

#include "commands/context.h"
#include "report/fit.h"

namespace cufit::commands {

struct FitOutputRequest {
  std::optional<std::string> html;  // a file for the page
  bool json = false;
};

// Writes the page where one is wanted, then prints. Exit::k_findings where a card that was asked
// for is too small, Exit::k_failed where the batch size that was asked for has no answer.
int print_fit_answer(const Context& context, const std::string& program, const fit::Answer& answer,
                     const FitOutputRequest& wanted);

}  // namespace cufit::commands
