// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "commands/args.h"
#include "commands/help.h"
#include "commands/self/docs.h"

namespace cufit::commands {
namespace {

// Text for roff: backslashes and hyphens stay what they are, `quoted` becomes bold, a line cannot
// become a request.
std::string roff(std::string_view text) {
  std::string out;
  bool bold = false;
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        bold = !bold;
        out += bold ? "\\fB" : "\\fR";
        break;
      case '\n':
        out += ' ';
        break;
      default:
        out += c;
    }
  }
  if (bold) out += "\\fR";
  if (!out.empty() && out[0] == '.') out.insert(0, "\\&");
  return out;
}

// "\fB\-v\fR, \fB\-\-verbose\fR" or "\fB\-\-env\fR \fIDIR\fR"
std::string flags_of(const Option& option) {
  if (is_positional(option)) return "\\fI" + roff(option.flags) + "\\fR";
  std::string out;
  for (std::string_view flag : split(option.flags, ','))
    out += (out.empty() ? "" : ", ") + ("\\fB" + roff(flag) + "\\fR");
  if (!option.value.empty()) out += " \\fI" + roff(option.value) + "\\fR";
  return out;
}

std::string option_entry(const Command& command, const Option& option, const HelpTexts& texts) {
  std::string help = roff(texts.option(command, option));
  if (!option.choices.empty()) {
    help += (help.empty() ? "" : "; ") + std::string("one of \\fB") +
            roff(join(choices_of(option), ", ")) + "\\fR";
  }
  return ".TP\n" + flags_of(option) + (option.repeats ? " ..." : "") + "\n" + help + "\n";
}

std::string command_entry(const Command& command, const HelpTexts& texts) {
  std::string out =
      ".SS \"cufit " + roff(command.name) + "\"\n" + roff(texts.summary(command)) + ".\n";
  for (const Option& option : command.options) out += option_entry(command, option, texts);
  return out;
}

std::string pair(const std::string& term, const std::string& text) {
  return ".TP\n\\fB" + roff(term) + "\\fR\n" + roff(text) + "\n";
}

}  // namespace

std::string man_page(std::span<const Command> commands, const knowledge::Knowledge& knowledge) {
  const HelpTexts texts(knowledge, "en");
  const auto message = [&](std::string_view key) { return texts.message(key); };
  // No date: two builds of one version give the same page.
  std::string out = format(".TH CUFIT 1 \"\" \"cufit {}\" \"User Commands\"\n", CUFIT_VERSION);
  out += ".SH NAME\ncufit \\- " + roff(message("help.words.about")) + "\n";
  out += ".SH SYNOPSIS\n.nf\n\\fBcufit\\fR\n";
  for (const Command& command : commands) {
    if (command.hidden) continue;
    out += "\\fBcufit " + roff(command.name) + "\\fR [\\fIOPTION\\fR...]";
    for (const Option& option : command.options) {
      if (!is_positional(option)) continue;
      std::string name = "\\fI" + roff(option.flags) + "\\fR" + (option.repeats ? "..." : "");
      out += option.required ? " " + name : " [" + name + "]";
    }
    out += "\n";
  }
  out += ".fi\n.SH DESCRIPTION\n" + roff(message("man.about")) + "\n.SH COMMANDS\n";
  for (const Command& command : commands) {
    if (!command.hidden) out += command_entry(command, texts);
  }
  out += ".SH \"COMMON OPTIONS\"\n";
  for (const Option& option : common_options())
    out += option_entry(commands.empty() ? Command{} : commands[0], option, texts);
  out += ".SH \"EXIT STATUS\"\n";
  out += pair("0", message("man.exit.ok")) + pair("1", message("man.exit.findings"));
  out += pair("2", message("man.exit.usage")) + pair("3", message("man.exit.failed"));
  out += pair("130", message("man.exit.interrupted"));
  out += ".SH ENVIRONMENT\n" + pair("CUFIT_LANG", message("man.environment.lang"));
  out += pair("CUFIT_LOCK", message("man.environment.lock")) +
         pair("CUFIT_CLASS", message("man.environment.class"));
  out += pair("NO_COLOR", message("man.environment.no_color")) +
         pair("COLUMNS", message("man.environment.columns"));
  out += ".SH EXAMPLES\n" + pair("cufit doctor", message("man.example.doctor"));
  out += pair("cufit doctor --record machine.json", message("man.example.record"));
  out += pair("cufit doctor --from machine.json", message("man.example.from"));
  out += pair("python train.py 2>&1 | cufit explain --here", message("man.example.explain"));
  out += pair("cufit doctor --env ./venv --gpu \"RTX 5090\" --driver 570",
              message("man.example.what_if"));
  return out;
}

}  // namespace cufit::commands
