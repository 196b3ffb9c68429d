// SPDX-License-Identifier: Apache-2.0
// What a class of a plan becomes in a lock: its row, and the platform that the installer resolves
// it for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/python/pylock.h"
#include "resolve/lock/lock_file.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {

// "x86_64-manylinux_2_28" for "linux_x86_64": the newest that the wheel and all machines of the
// class have, as uv names it; 2.28 where nothing else is known.
std::string uv_platform(const std::string& platform, const std::vector<Version>& glibcs,
                        const std::optional<Version>& wheel);
std::string uv_platform(const Plan& plan, const Class& one);

// Without what its pylock tells. `of_index`: the choice is the best of what an index has, not of
// what is known.
LockClass lock_class(const Plan& plan, const Class& one, bool of_index);

// What a lock does not keep of its packages.
struct LockedPackages {
  uint64_t unsized = 0;            // of unknown size
  std::vector<std::string> built;  // from source, as they have no wheel for the platform
};
// The number and the bytes of its packages come into the row. `platform`: of uv_platform().
LockedPackages take_packages(LockClass& row, const formats::Pylock& pylock,
                             const std::string& platform);

}  // namespace cufit::resolve
