// SPDX-License-Identifier: Apache-2.0
#include "report/notify/watch_unit.h"

#include "base/format.h"
#include "report/export/export_template.h"
#include "report/notify/notify_template.h"

namespace cufit::report {

std::string systemd_word(std::string_view word) {
  constexpr std::string_view k_plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+";
  if (!word.empty() && word.find_first_not_of(k_plain) == word.npos && word[0] != '@' &&
      word[0] != '-' && word[0] != '+' && word[0] != ':')
    return std::string(word);
  std::string out = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (c == '%' || c == '$')
      out += std::string(2, c);
    else if (byte < 0x20 || byte == 0x7f)
      out += format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string watch_unit(const WatchUnit& unit, std::string_view lang,
                       const knowledge::Knowledge& knowledge) {
  Scope scope;
  scope.values["version"] = CUFIT_VERSION;
  std::string command;
  for (const std::string& word : unit.command)
    command += (command.empty() ? "" : " ") +
               (starts_with(word, "--") && word.find_first_of(" %$\"\\") == word.npos
                    ? word
                    : systemd_word(word));
  scope.values["command"] = command;
  scope.values["env"] = unit.reads_variables ? "/etc/cufit/watch.env" : "";
  // A user's program writes somewhere, /etc and /usr apart.
  scope.values["protect"] = unit.runs_programs ? "full" : "strict";
  return fill_template(notify_template("cufit-watch.service"), scope, lang, knowledge);
}

}  // namespace cufit::report
