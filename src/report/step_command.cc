// SPDX-License-Identifier: Apache-2.0
#include "report/step_command.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "report/doctor_content.h"

namespace cufit::report {
namespace {

constexpr std::string_view k_programs[] = {
    "&",        "accelerate", "apt",     "cat",        "chmod",    "chown",      "conda",
    "cp",       "cufit",      "curl",    "dmesg",      "dnf",      "docker",     "echo",
    "env",      "export",     "find",    "git",        "grep",     "ip",         "journalctl",
    "kubectl",  "ldconfig",   "ldd",     "ln",         "ls",       "lspci",      "mkdir",
    "modprobe", "mokutil",    "mv",      "nvidia-smi", "nvcc",     "nvidia-ctk", "pip",
    "pdm",      "pipenv",     "pixi",    "podman",     "poetry",   "powershell", "printf",
    "py",       "python",     "python3", "rm",         "scontrol", "sed",        "set",
    "setx",     "source",     "srun",    "stat",       "sudo",     "systemctl",  "test",
    "torchrun", "ulimit",     "unset",   "uv",         "uvx",      "wget",       "winget",
    "zypper",
};

// "CUDA_LAUNCH_BLOCKING=1" in front of a program.
bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<ptrdiff_t>(equals), [](char c) {
    return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
}

// "PACKAGE", "PROGRAM.py", "<index>", "...": somebody has to fill it in.
bool is_placeholder(std::string_view word) {
  if (word == "..." || contains(word, "<") || contains(word, "{")) return true;
  if (ends_with(word, ".py")) word.remove_suffix(3);
  return word.size() >= 3 && word[0] != '_' && std::all_of(word.begin(), word.end(), [](char c) {
           return c == '_' || (c >= 'A' && c <= 'Z');
         });
}

// Words outside of quotes; what is quoted counts as one letter.
std::vector<std::string> bare_words(std::string_view command) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (const char c : command) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
      words.back() += 'q';
    } else if (c == ' ') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool is_program(std::string_view word) {
  if (contains(word, "(") || contains(word, ",")) return false;
  if (word == "q") return true;  // a quoted path
  const bool path = contains(word, "/") || contains(word, "\\");
  const std::string_view name = file_name(word);
  return path || starts_with(name, "python3.") ||
         std::find(std::begin(k_programs), std::end(k_programs), name) != std::end(k_programs);
}

// "docker run --gpus all": which image to start is left to the reader.
bool lacks_image(const std::vector<std::string>& words, size_t first) {
  if (words[first] != "docker" && words[first] != "podman") return false;
  if (first + 1 >= words.size() || words[first + 1] != "run") return false;
  for (size_t i = first + 2; i < words.size(); ++i) {
    if (words[i][0] == '-') continue;
    const std::string& before = words[i - 1];
    if (before[0] != '-' || before.find('=') != std::string::npos || before == "--rm") return false;
  }
  return true;
}

// "PYTHONPATH" behind `unset` is a name and no placeholder.
bool takes_a_name(std::string_view program) { return program == "unset" || program == "export"; }

bool can_be_run(std::string_view command) {
  const std::vector<std::string> words = bare_words(command);
  size_t first = 0;
  while (first < words.size() && is_assignment(words[first])) ++first;
  if (first == words.size() || !is_program(words[first])) return false;
  if (lacks_image(words, first)) return false;
  if (takes_a_name(words[first])) return true;
  return std::none_of(words.begin(), words.end(),
                      [](const std::string& word) { return is_placeholder(word); });
}

// A person has to do something before what follows: "Update the driver first, then install".
bool asks_for_more(std::string_view prose) {
  const std::string text = " " + lower(prose) + " ";
  for (const std::string_view word : {" then ", " first", ";", ". ", " or ", " if ", " and "})
    if (contains(text, word)) return true;
  return false;
}

bool is_other_way(std::string_view prose) {
  const std::string text = " " + lower(prose) + " ";
  return contains(text, " or ") || contains(text, " if ") || contains(text, " as a test");
}

bool is_link(std::string_view prose) {
  return prose == "then" || prose == "and" || prose == "and then" || prose == "then run";
}

}  // namespace

std::optional<std::string> step_command(const std::string& en, const std::string& zh) {
  std::string out;
  bool linked = true;
  std::string between;
  for (const Piece& piece : next_pieces(en, en, zh)) {
    if (!piece.command) {
      if (out.empty() && asks_for_more(piece.text)) return std::nullopt;
      linked = out.empty() || is_link(piece.text);
      between = piece.text;
      continue;
    }
    // A second command that does not follow at once: half a step would be left out, unless it is
    // another way ("`a`; or `b`").
    if (!linked && is_other_way(between)) break;
    if (!linked) return std::nullopt;
    if (!can_be_run(piece.text)) return std::nullopt;
    out += (out.empty() ? "" : " && ") + piece.text;
    linked = false;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

bool changes_its_shell(const std::string& command) {
  const std::vector<std::string> words = bare_words(command);
  for (const char* builtin : {"source", "export", "unset", "ulimit", "set", "cd"})
    if (!words.empty() && words[0] == builtin) return true;
  return false;
}

Json step_command_json(const std::string& en, const std::string& zh) {
  const std::optional<std::string> command = step_command(en, zh);
  return command ? Json(*command) : Json(nullptr);
}

Json finding_command(const checks::Finding& finding, const knowledge::Knowledge& knowledge) {
  return step_command_json(finding_text(finding, "next", "en", knowledge),
                           finding_text(finding, "next", "zh", knowledge));
}

}  // namespace cufit::report
