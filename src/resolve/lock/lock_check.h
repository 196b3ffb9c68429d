// SPDX-License-Identifier: Apache-2.0
// What no longer agrees: a lock with what it was made from. Findings only; texts in
// data/findings/lock_*.toml. Of environments: environment_check.h.
#pragma once

#include <string>
#include <vector>

#include "checks/finding.h"
#include "formats/python/pylock.h"
#include "facts/facts.h"
#include "resolve/lock/lock_file.h"
#include "resolve/wheel/policy.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {

struct LockedPackageChange {
  std::string name;
  std::string before, after;  // versions; empty = not there; equal = other files of one version
};

// Of the packages that apply on Linux with this Python and machine, by name.
std::vector<LockedPackageChange> changes_between(const formats::Pylock& before,
                                                 const formats::Pylock& after,
                                                 const std::string& python,
                                                 const std::string& machine);
// What the environment has against what the pylock names; pip, setuptools, wheel and uv, which
// belong to installers, are left out where the lock does not name them.
std::vector<LockedPackageChange> changes_between(const formats::Pylock& lock,
                                                 const facts::PythonEnv& env,
                                                 const std::string& python,
                                                 const std::string& machine);
// "numpy 1.26.4 -> 2.1.0, + scipy 1.14, - pip 24"; at most `most`, then "and 3 more".
std::string changes_text(const std::vector<LockedPackageChange>& changes, size_t most = 6);

// "2.0" and "2.0.0" are one version; local parts count.
bool same_version(const std::string& a, const std::string& b);

// "x86_64" of "linux_x86_64".
std::string machine_of(const LockClass& one);

// The class's pylock as it lies on the disk (`bytes` nullptr: it cannot be read, `why` tells).
std::vector<checks::Finding> check_pylock(const LockClass& one, const std::string& path,
                                          const std::string* bytes, const std::string& why);
// cufit.lock itself against its own sum.
std::vector<checks::Finding> check_sum(const LockFile& lock);
// The pylock's torch where it is another than the class's: cufit.lock itself was edited, which no
// sum covers. Empty where they agree.
std::string other_torch(const LockClass& one, const formats::Pylock& pylock);
std::vector<checks::Finding> check_row(const LockClass& one, const std::string& path,
                                       const formats::Pylock& pylock);
// What the requirements name now against what the lock says it was made from, and
// Pythons that a project has come to refuse; `python`: the
// one asked for, empty = any.
std::vector<checks::Finding> check_requirements(const LockFile& lock,
                                                const std::vector<std::string>& now,
                                                const std::vector<PythonDemand>& pythons,
                                                const std::string& python);
std::vector<checks::Finding> check_policy(const LockFile& lock, const Policy& policy);
// `relocked` is what the installer would write today.
std::vector<checks::Finding> check_resolution(const LockClass& one, const formats::Pylock& locked,
                                              const formats::Pylock& relocked);

}  // namespace cufit::resolve
