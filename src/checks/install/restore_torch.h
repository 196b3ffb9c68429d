// SPDX-License-Identifier: Apache-2.0
// An installed program wants one torch alone, and another one is there: what was installed over it
// goes back to the program's own, in one step, with the partners that belong to it.
#pragma once

#include <optional>
#include <string>

#include "checks/check.h"

namespace cufit::checks {

struct TorchRestore {
  std::string package, version;  // "vllm", "0.6.3.post1"
  std::string torch;             // "2.4.0"
  std::string command;
  Change change;
};
// Where one program's torch suits all other packages, or it brings them along, and the torch of
// today's default index in that release runs here.
std::optional<TorchRestore> restore_torch(const Input& input, const facts::PythonEnv& env);

}  // namespace cufit::checks
