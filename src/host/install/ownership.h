// SPDX-License-Identifier: Apache-2.0
// Whose programs would be run: in a folder that several people may write to (/tmp, a cluster's
// scratch space), a cufit.lock or an environment may be anybody's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/files/host.h"

namespace cufit::host {

struct ForeignOwner {
  std::string path;   // the first that is somebody else's
  std::string owner;  // "uid 12345 (mallory)", the name where /etc/passwd has it
};

// The lock's folder, its cufit.lock and, of a class that is named, what lies between the folder and
// its environment. nullopt: all that is there belongs to this user (under sudo also to the one who
// called it), to root, or, where the folder was `named` by this user, to the folder's owner; or the
// folder or one above it stands in CUFIT_SAFE_DIRECTORY (folders with ":" between; "*": any).
std::optional<ForeignOwner> foreign_owner(const Host& host, const std::string& lock_folder,
                                          bool named, const std::string& class_name = {});

// The same of one file that was found in a folder above, and not named.
std::optional<ForeignOwner> foreign_file(const Host& host, const std::string& path);

// The same rule for owners that are known: `of` has the folder first.
struct OwnedPath {
  std::string path;
  uint32_t uid;
};
const OwnedPath* first_foreign(const std::vector<OwnedPath>& of, bool named,
                               const std::vector<uint32_t>& own);
// `folder` is one of `list`, or lies below one.
bool is_safe_directory(const std::string& folder, const std::string& list);

// The value of CUFIT_SAFE_DIRECTORY that has `folder` as well.
std::string with_safe_directory(const Host& host, const std::string& folder);

}  // namespace cufit::host
