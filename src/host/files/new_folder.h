// SPDX-License-Identifier: Apache-2.0
// A folder that is made for a result goes again where there is none.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cufit::host {

class NewFolder {
 public:
  NewFolder() = default;
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  // Removes what make() made, unless it holds anything or is kept.
  ~NewFolder();
  // With those above it; nothing where it is there. Error{io} names it.
  Result<void> make(const std::string& folder);
  void keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;  // the deepest first
};

}  // namespace cufit::host
