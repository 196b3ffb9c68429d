// SPDX-License-Identifier: Apache-2.0
// The jobs of `cufit pack`: JOBS.toml, answers of `cufit fit --json`, memory snapshots, sizes, and
// commands that are traced.
#pragma once

#include <string>
#include <vector>

#include "commands/command.h"
#include "fit/pack/pack_plan.h"

namespace cufit::commands {

// In the order of the arguments. `gpus`: for which a command is traced. Errors name file and place;
// Error{cancelled} where a signal asked cufit to end a trace.
// `most`: jobs in all, those of `count` each counted.
Result<std::vector<pack::Job>> pack_jobs(const Context& context,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<pack::Gpu>& gpus,
                                         size_t most = pack::k_most_jobs);

// "20G" as a job of that size, which PyTorch's allocator takes.
Result<pack::Job> job_of_size(const std::string& option, const std::string& text,
                              const std::string& name);

}  // namespace cufit::commands
