// SPDX-License-Identifier: Apache-2.0
#include "facts/secrets.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <re2/re2.h>

#include "base/format.h"

namespace cufit::facts {
namespace {

constexpr const char* k_hidden = "***";

struct TokenRule {
  RE2 pattern;
  bool keeps_first;  // what stands before the token stays
};

// The forms of tokens that services give.
const std::vector<std::unique_ptr<TokenRule>>& token_rules() {
  static const std::vector<std::unique_ptr<TokenRule>> all = [] {
    std::vector<std::unique_ptr<TokenRule>> out;
    const auto add = [&](const char* pattern, bool keeps_first) {
      out.push_back(std::unique_ptr<TokenRule>(new TokenRule{RE2(pattern), keeps_first}));
    };
    add(R"(\b(?:hf_|gh[opsru]_|github_pat_|glpat-|nvapi-|pypi-AgE|xox[abp]-)[A-Za-z0-9_-]{20,})",
        false);
    add(R"(\bsk-(?:proj-|ant-)?[A-Za-z0-9_]{20,})", false);  // no word with dashes
    add(R"(\bAKIA[0-9A-Z]{16}\b)", false);
    add(R"(\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)", false);
    add(R"((?i)([?&](?:[\w-]*[_-])?(?:token|api_?key|key|secret|sig|signature|password|auth|)"
        R"(credential)(?:[_-][\w-]*)?=)[^&\s#'"]+)",
        true);
    return out;
  }();
  return all;
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || (c & 0x80) != 0;
}

// Parts of "--hf-token", "trainer.logger.api_key", small letters.
std::vector<std::string> name_parts(std::string_view name) {
  std::string text = lower(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  std::vector<std::string> out;
  for (const std::string_view part : split(text, '_'))
    if (!part.empty()) out.emplace_back(part);
  return out;
}

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// The end of a value that begins at `at`: of a quoted one its quotation mark, else a blank or what ends a word of a shell.
size_t value_end(std::string_view text, size_t at) {
  if (at < text.size() && (text[at] == '\'' || text[at] == '"')) {
    const size_t end = text.find(text[at], at + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  const size_t end = text.find_first_of(" \t\n'\"&;,)|", at);
  return end == std::string_view::npos ? text.size() : end;
}

// Behind a name that ends at `at`: "=", ":", "'] = "; where its value begins, or npos.
size_t value_start(std::string_view text, size_t at) {
  const size_t limit = std::min(text.size(), at + 8);  // "\"'])", blanks
  while (at < limit && is_any_of(text.substr(at, 1), {"'", "\"", "]", ")", " ", "\\"})) ++at;
  if (at >= limit || (text[at] != '=' && text[at] != ':')) return std::string_view::npos;
  ++at;
  while (at < text.size() && (text[at] == ' ' || text[at] == '=' || text[at] == '\\')) ++at;
  return at;
}

// "Authorization: Bearer X": the kind of login is no secret, the word behind it is.
size_t past_login_kind(std::string_view text, size_t at) {
  for (const std::string_view kind : {"bearer ", "basic ", "token "})
    if (lower(text.substr(at, kind.size())) == kind) return at + kind.size();
  return at;
}

// Of one word, or of a line of a shell in it: names with their values, options and what follows them.
std::string without_named_secrets(std::string_view word) {
  std::string out;
  size_t at = 0;
  while (at < word.size()) {
    if (!is_name_byte(word[at])) {
      out += word[at++];
      continue;
    }
    size_t end = at;
    while (end < word.size() && is_name_byte(word[end])) ++end;
    const std::string_view name = word.substr(at, end - at);
    out += name;
    at = end;
    const bool is_login = lower(name) == "authorization";
    if (!is_login && !is_secret_name(name)) continue;
    size_t start = value_start(word, end);
    if (start == std::string_view::npos && starts_with(name, "-") && end < word.size() &&
        word[end] == ' ')
      start = end + 1;  // "--token X" inside
    if (start == std::string_view::npos || start >= word.size()) continue;
    if (is_login) start = past_login_kind(word, start);
    const size_t stop = value_end(word, start);
    if (stop == start) continue;
    out += word.substr(end, start - end);
    out += k_hidden;
    at = stop;
  }
  return out;
}

}  // namespace

void hide_tokens(std::string& text, const std::string& shown) {
  static const RE2 k_login(R"((?i)\b([a-z][a-z0-9+.-]*://)[^\s/'"]*@)");
  RE2::GlobalReplace(&text, k_login, R"(\1user@)");
  for (const auto& rule : token_rules())
    RE2::GlobalReplace(&text, rule->pattern, rule->keeps_first ? R"(\1)" + shown : shown);
}

bool is_secret_name(std::string_view name) {
  const std::vector<std::string> parts = name_parts(name);
  if (parts.empty()) return false;
  const std::string& last = parts.back();
  const std::string before = parts.size() > 1 ? parts[parts.size() - 2] : std::string();
  if (is_any_of(last, {"password", "passwd", "pwd", "passphrase", "secret", "secrets", "apikey",
                       "accesskey", "secretkey", "authkey", "credential", "credentials"}))
    return last != "pwd" || parts.size() > 1;  // alone the working folder
  // Names of a vocabulary's tokens, and of rates.
  if (last == "token")
    return !is_any_of(
        before, {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "image", "video",
                 "audio", "stop", "end", "start", "per", "by", "sot", "eot"});
  return last == "key" && is_any_of(before, {"api", "access", "secret", "private", "auth",
                                             "account", "license", "encryption", "subscription"});
}

std::string shown_command(std::string_view cmdline) {
  while (!cmdline.empty() && cmdline.back() == '\0') cmdline.remove_suffix(1);
  std::string out;
  bool hides_next = false;
  for (const std::string_view word : split(cmdline, '\0')) {
    if (!out.empty()) out += ' ';
    // An option without a value is followed by the next option.
    const bool hidden = hides_next && !starts_with(word, "--");
    out += hidden ? std::string(k_hidden) : without_named_secrets(word);
    hides_next = !hidden && starts_with(word, "-") && word.find_first_of("= :") == word.npos &&
                 is_secret_name(word);
  }
  hide_tokens(out, k_hidden);
  return out;
}

}  // namespace cufit::facts
