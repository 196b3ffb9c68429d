// SPDX-License-Identifier: Apache-2.0
// `cufit env create|list|check|remove`: the environments of a lock, side by side in
// DIR/.cufit/envs. host/install/environments keeps them whole, host/install/installer fills them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/env/env_tools.h"
#include "commands/run/run_choice.h"
#include "facts/facts.h"
#include "formats/python/pylock.h"
#include "host/files/host.h"
#include "host/install/environments.h"
#include "host/install/installer.h"
#include "host/process/child_process.h"
#include "report/lock.h"
#include "resolve/lock/lock_file.h"
#include "resolve/wheel/policy.h"

namespace cufit::commands {

// What the four commands ask alike.
struct EnvRequest {
  std::vector<std::string> classes;  // empty: all of the lock
  std::optional<std::string> lock;   // a folder or the file
  bool json = false;
};
template <class Request>
inline constexpr Option k_class_option = inherited_option<Request, &Request::classes>("CLASS");
template <class Request>
inline constexpr Option k_lock_option = inherited_option<Request, &Request::lock>("--lock", "DIR");
template <class Request>
inline constexpr Option k_env_json_option = inherited_option<Request, &Request::json>("--json");

struct EnvListRequest : EnvRequest {};
struct EnvRemoveRequest : EnvRequest {};
struct EnvCheckRequest : EnvRequest {
  std::optional<std::string> policy;  // a file
  bool verbose = false;
};
struct EnvCreateRequest : EnvRequest {
  bool force = false;                // also what is there and current
  std::vector<std::string> indexes;  // URLs, or NAME=URL
  bool offline = false;
  std::optional<std::string> policy;  // a file
  std::optional<EnvTool> installer;   // else as the lock's folder tells
};

std::span<const Option> env_create_options();
std::span<const Option> env_list_options();
std::span<const Option> env_check_options();
std::span<const Option> env_remove_options();
int run_env_create(const Context& context, const EnvCreateRequest& request);
int run_env_list(const Context& context, const EnvListRequest& request);
int run_env_check(const Context& context, const EnvCheckRequest& request);
int run_env_remove(const Context& context, const EnvRemoveRequest& request);

// find_lock's; Error{usage} where there is none.
Result<FoundLock> open_lock(const Context& context, const std::optional<std::string>& asked);

// " --lock DIR" where it was given: commands that are shown can be copied.
std::string lock_option(const EnvRequest& request);

// Indices of the classes that CLASS names; all where none is named. Error{usage} lists them.
Result<std::vector<size_t>> chosen_classes(const std::vector<std::string>& asked,
                                           const resolve::LockFile& lock);

// The pylock of a class, its sum compared: an edited lock is not installed.
Result<formats::Pylock> read_pylock(const host::Host& files, const FoundLock& found,
                                    const resolve::LockClass& one);

report::EnvRow env_row(const host::Host& files, const host::EnvironmentPaths& paths,
                       const resolve::LockClass& one);

// By class: whether its torch can run on the GPUs that a process here sees. A lock of one class is
// for here; so are all where the GPUs cannot be told.
std::vector<bool> classes_for_here(const resolve::LockFile& lock, const host::Host& machine,
                                   const knowledge::Knowledge& knowledge);

}  // namespace cufit::commands
