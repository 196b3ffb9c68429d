// SPDX-License-Identifier: Apache-2.0
#include "formats/system/sshd_config.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_sshd_settings = 10000;

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Up to a comment, which begins at a word of its own; quotes are taken off.
std::string sshd_value(std::string_view text) {
  std::string out;
  bool quoted = false, blank = true;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
      blank = false;
      continue;
    }
    if (c == '#' && blank && !quoted) break;
    blank = c == ' ' || c == '\t';
    out += c == '\t' ? ' ' : c;
  }
  return std::string(trim(out));
}

// "2222" of "${SSH_PORT:-2222}".
std::string default_of(const std::string& value) {
  const size_t mark = value.find(":-");
  const bool variable = starts_with(value, "${") && ends_with(value, "}");
  return variable && mark != std::string::npos ? value.substr(mark + 2, value.size() - mark - 3)
                                               : value;
}

// Where sshd itself stands, behind `exec` or `tini --`; npos = nowhere.
size_t sshd_at(const ShellCommand& command) {
  if (starts_nothing(command.words)) return std::string::npos;
  for (size_t i = 0; i < command.words.size(); ++i)
    if (program_name(command.words[i]) == "sshd") return i;
  return std::string::npos;
}

// `service ssh start`, `/etc/init.d/ssh restart`, `systemctl start sshd`.
bool starts_service(const ShellCommand& command) {
  bool service = false, start = false;
  for (const std::string& word : command.words) {
    service = service || word == "ssh" || word == "sshd" || word == "/etc/init.d/ssh" ||
              word == "/etc/init.d/sshd" || word == "ssh.service" || word == "sshd.service";
    start = start || word == "start" || word == "restart";
  }
  return service && start;
}

}  // namespace

SshdStart parse_sshd_start(const ShellCommand& command) {
  SshdStart out;
  const size_t at = sshd_at(command);
  out.starts = at != std::string::npos || starts_service(command);
  if (at == std::string::npos || starts_service(command)) return out;
  const std::vector<std::string>& words = command.words;
  for (size_t i = at + 1; i < words.size(); ++i) {
    if (words[i].size() < 2 || words[i][0] != '-') continue;
    // The last letter of "-Dep 22" takes what follows; that of "-p22" its own rest.
    const size_t letter = words[i].find_first_of("pofhcCEgubk", 1);
    if (letter == std::string::npos) continue;
    std::string value = words[i].substr(letter + 1);
    const char option = words[i][letter];
    const uint32_t line = command.lines[i];
    if (value.empty() && i + 1 < words.size()) value = words[++i];
    if (value.empty()) break;
    if (option == 'f') out.file = value;
    if (option == 'p') out.settings.push_back({"port", default_of(value), "", line});
    if (option != 'o') continue;
    if (value.find('=') == std::string::npos && i + 1 < words.size()) value += " " + words[++i];
    for (SshdSetting& one : parse_sshd_config(value)) {
      one.line = line;
      one.value = default_of(one.value);
      out.settings.push_back(std::move(one));
    }
  }
  return out;
}

std::vector<SshdSetting> parse_sshd_config(std::string_view text) {
  std::vector<SshdSetting> out;
  std::string match;
  uint32_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line[0] == '#') continue;
    const size_t end = std::min(line.find_first_of(" \t="), line.size());
    SshdSetting one;
    for (const char c : line.substr(0, end)) one.keyword += lower_letter(c);
    std::string_view rest = trim(line.substr(end));
    if (starts_with(rest, "=")) rest = trim(rest.substr(1));
    one.value = sshd_value(rest);
    one.line = number;
    if (one.keyword.empty() || one.value.empty()) continue;
    if (one.keyword == "match") {
      std::string lower;
      for (const char c : one.value) lower += lower_letter(c);
      match = lower == "all" ? std::string() : one.value;
      continue;
    }
    one.match = match;
    if (out.size() >= k_most_sshd_settings) break;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace cufit::formats
