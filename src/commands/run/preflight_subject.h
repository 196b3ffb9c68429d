// SPDX-License-Identifier: Apache-2.0
// What `cufit preflight` judges: an environment that is named, the one that the shell has active, or
// the one that `cufit run` would choose.
#pragma once

#include <string>

#include "commands/run/preflight.h"

namespace cufit::commands {

// What is about to be used: a folder, or the environment that the shell has active (empty).
struct PreflightSubject {
  std::string env, class_name;
  bool cpu_class = false;           // of the lock: no GPU is wanted
  std::string said_id, said, next;  // why no environment can be used
  std::string machine;              // as `cufit run` would tell it
  std::string lock_folder;
};

Result<PreflightSubject> find_subject(const Context& context, const PreflightRequest& request);

// The command that gives the environment its torch.
std::string way_to_torch(const PreflightSubject& subject);

}  // namespace cufit::commands
