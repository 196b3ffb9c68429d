// SPDX-License-Identifier: Apache-2.0
// Takes out of Facts what tells who and where somebody is. Pure: the names to look for come from
// host/files/recording.h.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"

namespace cufit::facts {

struct PrivateName {
  // As the machine has it; short and common words are left alone. One that begins with a slash is
  // this user's home.
  std::string name;
  std::string replacement;  // "user", "host"
};

// Takes out the names given, home directories, UUIDs, serials, mail and network addresses, logins and
// tokens of known forms, keeping equal things equal (the second UUID stays the second). An IPv4
// address stays where it could be a version ("10.3.5.147" in a path).
Facts redact(Facts facts, const std::vector<PrivateName>& names);

}  // namespace cufit::facts
