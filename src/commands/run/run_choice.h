// SPDX-License-Identifier: Apache-2.0
// Which class of a cufit.lock a process started now should run in, and whether its environment is
// there: what `cufit run` and `cufit preflight` have in common.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "host/files/host.h"
#include "report/run.h"
#include "resolve/live_target.h"
#include "resolve/lock/lock_file.h"
#include "resolve/wheel/policy.h"

namespace cufit::commands {

struct FoundLock {
  std::string folder;  // absolute
  resolve::LockFile lock;
  bool named = false;  // by --lock or CUFIT_LOCK, not found above the working folder
};
// An error where the lock at `path` is another text than `cufit lock` wrote into the folder.
Result<void> verify_lock_checksum(const resolve::LockFile& lock, const std::string& path,
                                  const std::string& folder);
// On stderr, of a lock that was made before `cufit lock` wrote its sum, or that lost it.
void warn_missing_checksum(const Context& context, const resolve::LockFile& lock,
                           const std::string& path, const std::string& folder);

// --lock (a folder or the file), else CUFIT_LOCK, else cufit.lock in the working directory or one
// of its parents; nullopt = none of these names one.
// `quiet`: of `--quiet`, no warning.
Result<std::optional<FoundLock>> find_lock(const Context& context,
                                           const std::optional<std::string>& asked, bool quiet);

// The command that makes the environment of a class: "cufit env create cu126".
std::string create_command(const std::string& lock_folder, const std::string& class_name);

// The class of --env, else the one that fits what this process sees. A refusal is a finding about
// the machine, the lock or the environments; an Error is usage or a file that cannot be read.
struct RunChoice {
  resolve::LiveTarget live;
  resolve::Routing routing;  // empty verdicts with --env where only the driver could tell
  size_t index = resolve::Routing::npos;
  std::string env;         // folder of the environment
  bool asked_for = false;  // --env
  std::optional<report::RunRefusal> refusal;
};
Result<RunChoice> choose_class(const Context& context, const FoundLock& found,
                               const std::string& asked_class, const resolve::Policy& policy);

}  // namespace cufit::commands
