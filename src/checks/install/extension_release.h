// SPDX-License-Identifier: Apache-2.0
// The release of a compiled extension that goes with a torch (data/extensions.toml), and the command
// that puts it there.
#pragma once

#include <string>
#include <vector>

#include "checks/check.h"

namespace cufit::checks {

// The newest release of the package that goes with this torch and CUDA; null = none is known.
const knowledge::ExtensionRow* extension_release(const Input& input, const std::string& package,
                                                 const std::string& torch, const Version& cuda);
// PyTorch's own index has it, a file for each CUDA.
bool is_on_torch_index(const std::string& package, const knowledge::ExtensionRow& row);
// By itself, so that no installer changes torch for it; a project's lock decides that itself.
std::string extension_command(const Input& input, const facts::PythonEnv& env,
                              const std::string& package, const knowledge::ExtensionRow& row,
                              const std::string& tag);

// What has to come with another torch, since its files do not load beside it: those that are built
// for the CUDA of one torch, in the release for the new one.
struct ExtensionMove {
  std::string package, version, command;
};
std::vector<ExtensionMove> extensions_to_move(const Input& input, const facts::PythonEnv& env,
                                              const std::string& torch, const std::string& tag);
// Where it is not there already, a release of the package for this torch can be installed beside it.
bool can_move(const Input& input, const std::string& package, const std::string& torch,
              const std::string& tag);

}  // namespace cufit::checks
