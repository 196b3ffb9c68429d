// SPDX-License-Identifier: Apache-2.0
// Names of users from the system's name service: clusters have theirs in LDAP or SSSD, not in /etc/passwd.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cufit::host {

// Empty = no user has it; nullopt = not told yet, ask again later.
using UserLookup = std::function<std::optional<std::string>(uint32_t uid)>;

// getpwuid of this machine, asked by a thread of its own: a directory server that does not answer holds it up for minutes.
// The first question of a user waits 200 ms; while one is open there is no other. The thread is there only as long as a
// question is open, so that a process that forks has it seldom.
UserLookup name_service();

}  // namespace cufit::host
