// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"

namespace cufit {

// The value of a name among "NAME=value": of the first, as programs read their environment; empty = none.
inline std::string variable_value(const std::vector<std::string>& variables,
                                  std::string_view name) {
  for (const std::string& each : variables)
    if (each.size() > name.size() && starts_with(each, name) && each[name.size()] == '=')
      return each.substr(name.size() + 1);
  return {};
}

}  // namespace cufit
