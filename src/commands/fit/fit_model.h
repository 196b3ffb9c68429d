// SPDX-License-Identifier: Apache-2.0
// `cufit fit model.safetensors|DIR --train ...`: a model without a script. Headers and config.json
// are read here, the model itself is built by the program of python/cufit_model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/version.h"
#include "commands/fit/fit_program.h"
#include "fit/strategy.h"
#include "host/files/host.h"

namespace cufit::commands {

// How it is trained; nothing: as is usual.
struct FitModelRequest {
  std::optional<std::string> train;  // "full", "lora:16", "qlora"; nothing: no model is meant
  std::optional<std::string> res, dtype, optimizer, checkpointing, lora_targets;
  std::optional<std::string> ranks_of_model;  // "8", "2,4,8", "auto": GPUs that share the training
  std::optional<std::string> strategy;        // how
};

struct FitModel {
  std::string json;                  // for host::TraceOptions::model
  std::string title;                 // "model.safetensors --train lora:64", as typed
  std::vector<std::string> command;  // the Python to use
  std::optional<fit::Strategy> strategy;
};

// Error{usage} where options of a model stand without `--train`, or a model does.
Result<void> without_model(const host::Host& files, const std::vector<std::string>& command,
                           const FitModelRequest& model);

// The command is the model and the Python to use. `traced_for`: the card that is pretended. Error
// for files that cannot be read or that are no model that can be trained so.
Result<FitModel> fit_model(const host::Host& files, const FitProgramRequest& program,
                           const FitModelRequest& model,
                           const std::optional<ComputeCapability>& traced_for);

}  // namespace cufit::commands
