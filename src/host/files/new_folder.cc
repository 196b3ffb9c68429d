// SPDX-License-Identifier: Apache-2.0
#include "host/files/new_folder.h"

#include <filesystem>

#include "host/files/atomic_write.h"
#include "host/files/paths.h"

namespace cufit::host {

Result<void> NewFolder::make(const std::string& folder) {
  for (std::filesystem::path at = absolute_path(folder);
       !at.empty() && !path_exists(at.string()) && at != at.parent_path(); at = at.parent_path())
    if (at.has_filename()) made_.push_back(at.string());
  return create_folders(folder);
}

NewFolder::~NewFolder() {
  for (const std::string& one : made_) remove_empty_folder(one);
}

}  // namespace cufit::host
