// SPDX-License-Identifier: Apache-2.0
// Whose Pythons `cufit bench` compares: classes of a cufit.lock and folders, as `--env` names them; without it every class
// whose environment is there, else the environment that the shell has active.
#pragma once

#include <string>
#include <vector>

#include "commands/context.h"
#include "resolve/bench/measurement.h"

namespace cufit::commands {

// `cpu`: classes without a GPU are meant, too. Error{usage} names the word; one whose folder has no Python is no error but
// has its trouble in the answer.
Result<std::vector<resolve::BenchEnvironment>> bench_environments(
    const Context& context, const std::vector<std::string>& asked, bool cpu);

// The folder that `--env` of another command of the family means: of a class its environment. Error{usage}.
Result<resolve::BenchEnvironment> bench_environment(const Context& context,
                                                    const std::string& asked);

}  // namespace cufit::commands
