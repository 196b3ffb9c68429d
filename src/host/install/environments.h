// SPDX-License-Identifier: Apache-2.0
// The folders of a lock's environments on the disk: DIR/.cufit/envs/<class>/, made beside as
// .<class>.partial-<pid> and moved into place when they are whole. Used by `cufit env`.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/python/env_record.h"

namespace cufit::host {

// A name from a lock file becomes part of a path: letters, digits, "-", "_", "+" and inner dots.
bool is_class_name(const std::string& name);

struct EnvironmentPaths {
  std::string envs;     // DIR/.cufit/envs, absolute
  std::string folder;   // envs/<class>
  std::string record;   // envs/<class>.json
  std::string partial;  // envs/.<class>.partial-<pid>
};
// `lock_folder` need not be absolute but must exist.
Result<EnvironmentPaths> environment_paths(const std::string& lock_folder, const std::string& name);

// Held while environments of one lock are made or removed; the kernel frees it when the process
// ends, however it ends.
class EnvironmentsLock {
 public:
  // Makes the folder. Error{io} says that another cufit is at work there.
  static Result<EnvironmentsLock> take(const std::string& envs);
  EnvironmentsLock(EnvironmentsLock&& other) noexcept;
  EnvironmentsLock& operator=(EnvironmentsLock&&) = delete;
  ~EnvironmentsLock();

 private:
  explicit EnvironmentsLock(int file) : file_(file) {}
  int file_;
};

// What an interrupted create left behind; only while the lock is held. The number of folders.
size_t remove_leftovers(const std::string& envs);

// Moves `partial` to its place and writes the record; what was there before is removed at the very
// end, and put back where anything fails.
Result<void> swap_in(const EnvironmentPaths& paths, const formats::EnvRecord& record);

// Error{not_found}: not made by cufit. Any other error names the file: damaged, of another cufit's
// schema, or not to be read.
Result<formats::EnvRecord> read_record(const EnvironmentPaths& paths);

// Only what has a record and is a folder itself, no link.
Result<void> remove_environment(const EnvironmentPaths& paths);

void remove_tree(const std::string& folder);

struct Usage {
  uint64_t files = 0, bytes = 0;
  uint64_t shared_bytes = 0;  // of files with more than one hard link
};
Usage usage_of(const std::string& folder);

struct Space {
  uint64_t free_bytes = 0;  // for this user
  uint64_t device = 0;
};
// Of the filesystem that holds `path`, or its nearest parent that exists.
std::optional<Space> space_at(std::string path);

std::string utc_text(std::time_t at);  // "2026-11-21T23:05:00Z"

}  // namespace cufit::host
