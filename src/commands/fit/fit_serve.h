// SPDX-License-Identifier: Apache-2.0
// `cufit fit --serve MODEL|DIR --gpu NAME`: does serving a model fit, from its files alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/context.h"

namespace cufit::commands {

// Of a model that is served; `serve` nothing: none is meant.
struct FitServeRequest {
  std::optional<std::string> serve;  // a file or a folder
  std::optional<std::string> tp, context, concurrency, engine, kv_cache_dtype;
};

// Error{usage} where options of serving stand without `--serve`.
Result<void> without_serving(const FitServeRequest& request);

// The exit code.
int run_fit_serve(const Context& context, const FitServeRequest& request,
                  const std::vector<std::string>& gpus, bool json);

}  // namespace cufit::commands
