// SPDX-License-Identifier: Apache-2.0
// A torch that conda (or pixi) installed. A wheel over it mixes the files of both, and its channel
// ended with 2.5: it is taken out first, then pip installs.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"

namespace cufit::checks {

// conda's records of torch and what comes with it: "pytorch", "pytorch-cuda", "torchvision"; empty:
// torch is not conda's, or no wheel's alone.
std::vector<std::string> conda_torch_packages(const facts::PythonEnv& env);
// "conda remove -y -p PREFIX pytorch ... && "; empty: there is nothing to take out.
std::string conda_torch_removal(const facts::PythonEnv& env);
// The same build again.
std::string conda_torch_repair(const facts::PythonEnv& env);

}  // namespace cufit::checks
