// SPDX-License-Identifier: Apache-2.0
// `cufit fit -- python train.py`: how much memory a training program takes, before it has a GPU.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/fit/fit_model.h"
#include "commands/fit/fit_output.h"
#include "commands/fit/fit_recordings.h"
#include "commands/fit/fit_serve.h"
#include "commands/fit/fit_traces.h"

namespace cufit::commands {

struct FitRequest : FitProgramRequest,
                    FitModelRequest,
                    FitServeRequest,
                    FitRecordingsRequest,
                    FitOutputRequest {
  std::vector<std::string> gpus;        // names, sizes, "all"
  std::string batch = "auto";           // or a number
  std::optional<std::string> settings;  // of the allocator, in PyTorch's form
  std::optional<std::string> links;     // a recording of `cufit doctor --deep`, for plans
  bool cached = false;                  // an answer that is kept, or none
};

std::span<const Option> fit_options();
int run_fit(const Context& context, const FitRequest& request);

}  // namespace cufit::commands
