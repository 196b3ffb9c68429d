// SPDX-License-Identifier: Apache-2.0
// `cufit fit model.safetensors|DIR --train ...`: a model without a script. Headers and config.json
// are read here, the model itself is built by the program of python/cufit_model.
#pragma once

#include <string>
#include <vector>

#include "commands/command.h"
#include "formats/model/trace_events.h"
#include "report/fit.h"

namespace cufit::commands {

struct FitModel {
  std::string json;                  // for host::TraceOptions::model
  std::string title;                 // "model.safetensors --train lora:64", as typed
  std::vector<std::string> command;  // the Python to use
};

// `--train` says that a model is meant; Error{usage} where its options stand without it.
bool asks_for_model(const Arguments& arguments);
Result<void> without_model(const Arguments& arguments);

// `gpu`: "NVIDIA H200,9.0,150110011392". Error for files that cannot be read or that are no model
// that can be trained so.
Result<FitModel> fit_model(const Arguments& arguments, const std::string& gpu);

// Says of a trace that failed what stopped the model's program. `events` null: it wrote none.
void explain_model_failure(const formats::TraceEvents* events, report::FitFailure& failure);

}  // namespace cufit::commands
