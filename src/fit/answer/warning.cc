// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/warning.h"

#include <algorithm>
#include <utility>

namespace cufit::fit {

void add_warnings(std::vector<Warning>& list, std::vector<Warning> more) {
  for (Warning& warning : more) {
    const bool known = std::any_of(list.begin(), list.end(), [&warning](const Warning& other) {
      return other == warning || (other.id == "sizes_vary" && other.id == warning.id);
    });
    if (!known) list.push_back(std::move(warning));
  }
}

}  // namespace cufit::fit
