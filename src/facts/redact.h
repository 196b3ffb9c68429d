// SPDX-License-Identifier: Apache-2.0
// Takes out of Facts what tells who and where somebody is. Pure: the names to look for come from
// host/files/recording.h.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"

namespace cufit::facts {

struct PrivateName {
  std::string name;         // as the machine has it; short and common words are left alone
  std::string replacement;  // "user", "host"
};

// Takes out the names given, home directories, UUIDs, serials, mail and network addresses, keeping
// equal things equal (the second UUID stays the second).
Facts redact(Facts facts, const std::vector<PrivateName>& names);

}  // namespace cufit::facts
