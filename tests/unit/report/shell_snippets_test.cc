// SPDX-License-Identifier: Apache-2.0
// Every command that a finding's texts offer is one that a shell can read.
#include <gtest/gtest.h>
#include <re2/re2.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/format.h"
#include "knowledge/knowledge.h"

namespace cufit::report {
namespace shell_snippets_test {

// What a step starts with when it is a shell's: texts quote lines of Python and YAML as well.
bool is_shell(std::string_view code) {
  static const RE2 assignment(R"(^[A-Z][A-Z0-9_]*=)");
  const std::string first(code.substr(0, code.find(' ')));
  static const std::set<std::string> commands = {
      "sudo",  "python",  "python3",    "pip",     "uv",       "conda", "export",     "unset",
      "echo",  "printf",  "nvidia-smi", "docker",  "podman",   "ls",    "cat",        "find",
      "grep",  "dmesg",   "ldconfig",   "nvcc",    "which",    "rm",    "cd",         "ulimit",
      "env",   "kubectl", "mokutil",    "modinfo", "modprobe", "cufit", "nvidia-ctk", "systemctl",
      "lsmod", "lspci",   "ps",         "fuser",   "df",       "free",  "kill"};
  return commands.count(first) ||
         (code.find(' ') != code.npos &&
          RE2::PartialMatch(re2::StringPiece(code.data(), code.size()), assignment));
}

struct Snippet {
  std::string where, code;
};

std::vector<Snippet> snippets() {
  std::vector<Snippet> out;
  for (const knowledge::FindingTexts& finding : knowledge::Knowledge::builtin().findings) {
    for (const knowledge::TextPair& pair : finding.texts) {
      if (!starts_with(pair.key, "next") && pair.key != "decide") continue;
      for (std::string_view text : {pair.en, pair.zh}) {
        std::vector<std::string_view> parts = split(text, '`');
        if (parts.size() == 1 && pair.en == pair.zh) parts = {"", text};  // a command as a whole
        for (size_t i = 1; i < parts.size(); i += 2) {
          std::string code(parts[i]);
          RE2::GlobalReplace(&code, R"(\{[a-z0-9_]+\})", "x");
          RE2::GlobalReplace(&code, "<[a-z]+>", "x");  // the reader's own
          if (is_shell(code)) out.push_back({format("{} {}", finding.id, pair.key), code});
        }
      }
    }
  }
  return out;
}

int check(const std::filesystem::path& path, const std::vector<Snippet>& all) {
  std::ofstream(path) << [&] {
    std::string script;
    for (const Snippet& one : all) script += "f() {\n" + one.code + "\n}\n";
    return script;
  }();
  return std::system(("bash -n '" + path.string() + "' 2>/dev/null").c_str());
}

TEST(ShellSnippets, AreReadByAShell) {
  if (std::system("bash -c true 2>/dev/null") != 0) GTEST_SKIP() << "there is no bash";
  const std::vector<Snippet> all = snippets();
  EXPECT_GE(all.size(), 250u);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("cufit-snippets-" + std::to_string(::getpid()));
  if (check(path, all) != 0) {
    for (const Snippet& one : all)
      EXPECT_EQ(check(path, {one}), 0) << one.where << ": " << one.code;
  }
  EXPECT_NE(check(path, {{"", "echo 'x"}}), 0);  // it does look
  std::filesystem::remove(path);
}

// A variable that one statement of the code sets and uses: `export A=1 B=$A` expands $A before it
// is set.
std::string used_too_early(std::string_view code) {
  for (std::string_view statement : split(code, ';')) {
    statement = trim(statement);
    if (!starts_with(statement, "export ")) continue;
    re2::StringPiece rest(statement.data(), statement.size());
    std::set<std::string> set;
    std::string name, value, used;
    while (RE2::FindAndConsume(&rest, R"(\b([A-Z_]+)=(\S*))", &name, &value)) {
      re2::StringPiece of(value);
      while (RE2::FindAndConsume(&of, R"(\$\{?([A-Z_]+))", &used))
        if (set.count(used)) return used;
      set.insert(name);
    }
  }
  return {};
}

TEST(ShellSnippets, UseNoVariableOfTheSameExport) {
  EXPECT_EQ(used_too_early("export A=1 B=$A/bin"), "A");
  EXPECT_EQ(used_too_early("export A=1; export B=$A/bin"), "");
  for (const Snippet& one : snippets())
    EXPECT_EQ(used_too_early(one.code), "") << one.where << ": " << one.code;
}

}  // namespace shell_snippets_test
}  // namespace cufit::report
