// SPDX-License-Identifier: Apache-2.0
// What `cufit lock` and `cufit lock --check` share: what is locked for which machines, from where
// packages come, and one class resolved by the installer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/lock/lock_inputs.h"
#include "commands/resolve/targets.h"
#include "host/install/index_client.h"
#include "host/install/installer.h"
#include "host/install/lock_folder.h"
#include "resolve/lock/lock_file.h"

namespace cufit::commands {

struct LockRequest {
  std::vector<std::string> requirements;
  std::vector<std::string> files;   // requirements.txt, pyproject.toml
  std::vector<std::string> extras;  // of a pyproject.toml
  std::vector<std::string> targets;
  std::optional<std::string> python;
  std::optional<std::string> policy;  // a file
  std::vector<std::string> indexes;   // URLs, or NAME=URL
  bool default_index_only = false;
  bool offline = false;
  bool upgrade = false;
  std::string out = ".";  // the folder of the lock
  bool check = false;
  bool json = false;
};

// What is locked: the request, and from the lock that is there what it leaves out.
struct LockJob {
  std::string folder;                    // of the lock, as given
  std::optional<resolve::LockFile> old;  // the lock that is there
  LockInputs inputs;
  std::vector<std::string> targets;  // `--for`, or those of the old lock, or HERE
  std::string python;                // asked for; empty = this machine's, else the newest
  bool default_index_only = false;
  std::vector<std::string> asked;  // for LockFile::asked
  resolve::Policy policy;
  host::IndexSettings configured;        // what the installers' configuration says
  std::vector<formats::IndexUrl> given;  // `--index`
  host::IndexChoice index;               // for the child
  formats::IndexSetting mirror;          // of cufit.toml
  std::vector<std::string> notes;        // to be said on stderr

  std::vector<host::LockedSum> sums() const;  // of the lock that is there
};

// `must_exist`: for --check, a missing lock is an error.
Result<LockJob> read_lock_job(const Context& context, const LockRequest& request, bool must_exist);

// What the installer is to resolve for one class.
struct ClassToCompile {
  resolve::Wheel wheel;
  std::string python;
  std::string platform;  // of resolve::uv_platform()
  std::vector<resolve::Companion> companions;
  std::string output;  // a pylock beside the lock, whose versions are kept where it exists
  // Its release is the newest that may be, not the one that is: from the installer's own index, and
  // without what goes with it.
  bool torch_is_open = false;
  std::string beside = {};  // one more requirement that nobody wrote, to see whether it can be met
};
struct CompiledClass {
  std::string bytes;
  formats::Pylock pylock;
};
// One class by the installer. `output` is removed. Error{malformed}: no solution, and which demands
// have none.
Result<CompiledClass> compile_class(const host::Host& files, const LockJob& job,
                                    const host::Installer& uv, const ClassToCompile& asked,
                                    host::Interrupts& interrupts);

// What is asked for and has to be built where torch is already: no lock can hold it.
std::vector<const resolve::Companion*> built_apart(const LockJob& job,
                                                   const std::vector<resolve::Companion>& all);

}  // namespace cufit::commands
