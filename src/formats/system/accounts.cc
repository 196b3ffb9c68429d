// SPDX-License-Identifier: Apache-2.0
#include "formats/system/accounts.h"

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_accounts = 10000;

// Each line with a name and at least `least` fields, and its number.
template <class Use>
void each_account_line(std::string_view text, size_t least, const Use& use) {
  uint32_t number = 0;
  size_t taken = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty() || line[0] == '#' || line[0] == ':') continue;
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() < least) continue;
    if (++taken > k_most_accounts) return;
    use(fields, number);
  }
}

std::optional<uint32_t> account_number(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  uint32_t out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + static_cast<uint32_t>(c - '0');
  }
  return out;
}

}  // namespace

std::vector<Account> parse_passwd(std::string_view text) {
  std::vector<Account> out;
  each_account_line(text, 7, [&](const std::vector<std::string_view>& fields, uint32_t line) {
    out.push_back(
        {std::string(fields[0]), std::string(trim(fields[6])), account_number(fields[2]), line});
  });
  return out;
}

std::vector<AccountPassword> parse_shadow(std::string_view text) {
  std::vector<AccountPassword> out;
  each_account_line(text, 2, [&](const std::vector<std::string_view>& fields, uint32_t line) {
    const std::string_view word = fields[1];
    const bool locked = starts_with(word, "!") || starts_with(word, "*") || word == "x";
    out.push_back({std::string(fields[0]),
                   word.empty() ? PasswordState::empty
                   : locked     ? PasswordState::locked
                                : PasswordState::set,
                   line});
  });
  return out;
}

}  // namespace cufit::formats
