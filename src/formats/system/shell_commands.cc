// SPDX-License-Identifier: Apache-2.0
#include "formats/system/shell_commands.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_words = 20000;

bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return word.substr(0, equals).find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+") ==
         std::string_view::npos;
}

template <size_t N>
bool is_in(const std::string_view (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class ScriptReader {
 public:
  std::vector<ShellCommand> out;

  void read(std::string_view script) {
    for (at_ = 0; at_ < script.size(); ++at_) {
      const char c = script[at_];
      const char next = at_ + 1 < script.size() ? script[at_ + 1] : '\0';
      if (c == '\\' && (next == '\n' || next == '\r')) {  // the line goes on
        end_word();
        ++at_;
        ++line_;
      } else if (c == '#' && word_.empty() && !quoted_) {
        skip_line(script);
      } else if (c == '$' && next == '(') {
        add_substitution(script);
      } else if (c == '<' && next == '<') {
        note_document(script);
      } else if (c == '\n') {
        end_command(";");
        ++line_;
        skip_document(script);
      } else if (is_joint(script, c, next)) {
        end_command(std::string((c == '&' || c == '|') && next == c ? 2 : 1, c));
      } else if (is_blank(c)) {
        end_word();
      } else if (c == '"' || c == '\'') {
        quoted_ = true;
      } else if (c != '\\') {
        word_ += c;
      }
    }
    end_command();
  }

 private:
  // ";", "|", "(", ")", "&" except in "2>&1" and "&>file".
  bool is_joint(std::string_view script, char c, char next) const {
    if (c == '&') return next != '>' && (at_ == 0 || script[at_ - 1] != '>');
    return c == ';' || c == '|' || c == '(' || c == ')';
  }

  // An empty word in quotes is one, too.
  void end_word() {
    if ((!word_.empty() || quoted_) && words_ < k_most_words) {
      command_.words.push_back(word_);
      command_.lines.push_back(line_);
      ++words_;
    }
    word_.clear();
    quoted_ = false;
  }

  void end_command(const std::string& joint = {}) {
    end_word();
    command_.joint = joint;
    if (!command_.words.empty()) out.push_back(std::move(command_));
    command_ = {};
  }

  void skip_line(std::string_view script) {
    at_ = std::min(script.find('\n', at_), script.size()) - 1;
  }

  void add_substitution(std::string_view script) {
    int depth = 0;
    for (; at_ < script.size(); ++at_) {
      word_ += script[at_];
      if (script[at_] == '\n') ++line_;
      if (script[at_] == '(') ++depth;
      if (script[at_] == ')' && --depth == 0) return;
    }
  }

  // "<<EOF", "<<-'EOF'"; "<<<" hands over a word and has no lines.
  void note_document(std::string_view script) {
    if (script.substr(at_, 3) == "<<<") {
      at_ += 2;
      return;
    }
    size_t from = at_ + 2;
    while (from < script.size() && (script[from] == '-' || is_blank(script[from]))) ++from;
    const size_t end = std::min(script.find_first_of(" \t\r\n;|&<>", from), script.size());
    document_.clear();
    for (const char c : script.substr(from, end - from))
      if (c != '\'' && c != '"' && c != '\\') document_ += c;
    at_ = end - 1;
  }

  void skip_document(std::string_view script) {
    if (document_.empty()) return;
    while (at_ + 1 < script.size()) {
      const size_t end = std::min(script.find('\n', at_ + 1), script.size());
      const bool last = trim(script.substr(at_ + 1, end - at_ - 1)) == document_;
      at_ = end;
      ++line_;
      if (last) break;
    }
    document_.clear();
  }

  ShellCommand command_;
  std::string word_, document_;
  bool quoted_ = false;
  size_t at_ = 0, words_ = 0;
  uint32_t line_ = 1;
};

// Whether the words end in `sh -c` or `sh -c --`, with options of the shell between.
bool asks_for_script(std::vector<std::string> words) {
  if (!words.empty() && words.back() == "--") words.pop_back();
  if (words.empty()) return false;
  const std::string& option = words.back();
  if (option.size() < 2 || option[0] != '-' || option[1] == '-' || option.back() != 'c')
    return false;
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const std::string_view name = program_name(word);
    return name == "sh" || name == "bash" || name == "dash" || name == "ash" || name == "zsh";
  });
}

}  // namespace

std::string_view program_name(std::string_view word) {
  const size_t slash = word.rfind('/');
  return slash == std::string_view::npos ? word : word.substr(slash + 1);
}

size_t program_at(const std::vector<std::string>& words) {
  constexpr std::string_view k_before[] = {"exec", "env",  "time", "sudo", "nohup", "then",
                                           "do",   "else", "if",   "!",    "{"};
  size_t at = 0;
  while (at < words.size() && (is_assignment(words[at]) || is_in(k_before, words[at]))) ++at;
  return at;
}

bool starts_nothing(const std::vector<std::string>& words) {
  constexpr std::string_view k_quiet[] = {"pip",        "pip3",   "conda",   "mamba",
                                          "micromamba", "apt",    "apt-get", "apk",
                                          "yum",        "dnf",    "git",     "cd",
                                          "pushd",      "echo",   "printf",  "ls",
                                          "mkdir",      "rm",     "cp",      "mv",
                                          "ln",         "wget",   "curl",    "cat",
                                          "which",      "export", "test",    "[",
                                          "[[",         "grep",   "sed",     "chmod",
                                          "chown",      "tar",    "unzip",   "rsync",
                                          "touch",      "type",   "hf",      "find",
                                          "command",    "aws",    "gsutil",  "huggingface-cli"};
  const size_t at = program_at(words);
  if (at == words.size()) return true;
  std::string_view program = program_name(words[at]);
  const std::string second = at + 1 < words.size() ? words[at + 1] : std::string();
  if (starts_with(program, "python") && second == "-m" && at + 2 < words.size())
    program = words[at + 2];
  // What stands behind `conda run` and `uv run` is a command.
  if (program == "uv" || program == "conda" || program == "mamba" || program == "micromamba")
    return second != "run";
  return is_in(k_quiet, program);
}

std::vector<ShellCommand> read_shell_script(std::string_view script) {
  ScriptReader reader;
  reader.read(script);
  return std::move(reader.out);
}

std::vector<ShellCommand> read_commands(const std::vector<std::string>& arguments) {
  std::vector<ShellCommand> out(1);
  std::vector<std::string> before;
  for (const std::string& argument : arguments) {
    const bool script = argument != "--" && asks_for_script(before);
    if (script) out.emplace_back();
    // Lines are a script, too, where the image's entry point is the shell.
    if (script || contains(argument, "\n")) {
      std::vector<ShellCommand> read = read_shell_script(argument);
      if (!read.empty()) {
        out.back().words.insert(out.back().words.end(), read[0].words.begin(), read[0].words.end());
        out.back().lines.insert(out.back().lines.end(), read[0].lines.begin(), read[0].lines.end());
        out.back().joint = read[0].joint;
        out.insert(out.end(), read.begin() + 1, read.end());
      }
    } else {
      for (const std::string_view word : split(argument, ' ')) {
        if (word.empty() && !argument.empty()) continue;
        if (out.back().words.size() >= k_most_words) break;
        out.back().words.emplace_back(word);
        out.back().lines.push_back(0);
      }
    }
    if (before.size() >= 6) before.erase(before.begin());
    before.push_back(argument.substr(0, 64));
  }
  out.erase(std::remove_if(out.begin(), out.end(),
                           [](const ShellCommand& one) { return one.words.empty(); }),
            out.end());
  return out;
}

}  // namespace cufit::formats
