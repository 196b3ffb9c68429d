// SPDX-License-Identifier: Apache-2.0
// Accounts of a system's files: passwd(5) and shadow(5), one line each, fields between colons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

struct Account {
  std::string name, shell;
  std::optional<uint32_t> uid;
  uint32_t line = 0;
};
std::vector<Account> parse_passwd(std::string_view text);  // at most 10 000

// What the second field of shadow lets in: nobody ("*", "!", "!$6$..."), who knows a password, or
// everybody (empty).
enum class PasswordState { locked, set, empty };
struct AccountPassword {
  std::string name;
  PasswordState state = PasswordState::locked;
  uint32_t line = 0;
};
std::vector<AccountPassword> parse_shadow(std::string_view text);  // at most 10 000

}  // namespace cufit::formats
