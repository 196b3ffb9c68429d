// SPDX-License-Identifier: Apache-2.0
#include "resolve/image/sshd_view.h"

#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "resolve/image/image_rules.h"

namespace cufit::resolve {

using facts::PlacedSshd;

namespace {

// sshd's own value where nobody says another (sshd_config(5), OpenSSH 9).
struct SshdDefault {
  const char* keyword;
  const char* value;
};
constexpr SshdDefault k_sshd_defaults[] = {
    {"passwordauthentication", "yes"},        {"kbdinteractiveauthentication", "yes"},
    {"permitrootlogin", "prohibit-password"}, {"permitemptypasswords", "no"},
    {"pubkeyauthentication", "yes"},          {"usepam", "no"}};

// With the name that keyboard-interactive had until OpenSSH 8.7.
bool is_keyword(const PlacedSshd& one, std::string_view keyword) {
  return one.setting.keyword == keyword ||
         (keyword == "kbdinteractiveauthentication" &&
          one.setting.keyword == "challengeresponseauthentication");
}

// What a Match block says; nullptr = nothing.
const PlacedSshd* in_match(const facts::ImageSetup& setup, const std::string& match,
                           std::string_view keyword) {
  for (const PlacedSshd& one : setup.ssh)
    if (one.setting.match == match && is_keyword(one, keyword)) return &one;
  return nullptr;
}

}  // namespace

std::string lower_word(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool asks_for_key(const std::string& methods) {
  if (methods.empty()) return false;
  const std::string lower = lower_word(methods);
  for (const std::string_view list : split(lower, ' ')) {
    const std::vector<std::string_view> steps = split(list, ',');
    if (!list.empty() && std::find(steps.begin(), steps.end(), "publickey") == steps.end())
      return false;
  }
  return true;
}

const PlacedSshd* first_of(const facts::ImageSetup& setup, std::string_view keyword) {
  for (const PlacedSshd& one : setup.ssh)
    if (one.setting.match.empty() && is_keyword(one, keyword)) return &one;
  return nullptr;
}

std::string sshd_value(const facts::ImageSetup& setup, std::string_view keyword) {
  if (const PlacedSshd* said = first_of(setup, keyword)) return lower_word(said->setting.value);
  for (const SshdDefault& one : k_sshd_defaults)
    if (keyword == one.keyword) return one.value;
  return {};
}

const PlacedSshd* matched_with(const facts::ImageSetup& setup, std::string_view keyword,
                               std::string_view value) {
  for (const PlacedSshd& one : setup.ssh) {
    if (one.setting.match.empty() || !is_keyword(one, keyword) ||
        lower_word(one.setting.value) != value)
      continue;
    const PlacedSshd* methods = in_match(setup, one.setting.match, "authenticationmethods");
    if (!asks_for_key(methods != nullptr ? methods->setting.value
                                         : sshd_value(setup, "authenticationmethods")))
      return &one;
  }
  return nullptr;
}

checks::Evidence evidence_of(const PlacedSshd& one) {
  std::string said = one.setting.keyword + " " + one.setting.value;
  if (!one.setting.match.empty()) said += " (Match " + one.setting.match + ")";
  if (one.own_command) return {"file", one.path, said};
  return in_layer(one.path, one.setting.line, said, one.layer);
}

checks::Evidence evidence_of(const facts::ImageSetup& setup, std::string_view keyword) {
  if (const PlacedSshd* said = first_of(setup, keyword)) return evidence_of(*said);
  return checks::rule_says(
      format("sshd_config(5): {} is {} where it is not set", keyword, sshd_value(setup, keyword)));
}

bool is_option(const facts::ImageSetup& setup, std::string_view keyword) {
  const PlacedSshd* said = first_of(setup, keyword);
  return said != nullptr && said->by_option;
}

std::vector<std::string> user_words(const facts::ImageSetup& setup, std::string_view keyword) {
  std::vector<std::string> out;
  for (const PlacedSshd& one : setup.ssh)
    if (one.setting.match.empty() && one.setting.keyword == keyword)
      for (const std::string_view word : split(one.setting.value, ' '))
        if (!word.empty()) out.emplace_back(word);
  return out;
}

}  // namespace cufit::resolve
