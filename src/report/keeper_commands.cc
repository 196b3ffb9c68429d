// SPDX-License-Identifier: Apache-2.0
#include "report/keeper_commands.h"

#include <algorithm>
#include <vector>

#include "base/format.h"

namespace cufit::report {
namespace {

using explain::Keeper;

constexpr std::string_view k_pip = " -m pip ", k_code = "python -c ";

std::string with_blank(std::string_view words) {
  return words.empty() ? std::string() : " " + std::string(words);
}

// The arguments of one `pip install`.
struct Install {
  std::vector<std::string> wanted;
  std::string_view index;
  bool again = false;    // --force-reinstall
  bool newest = false;   // --upgrade
  bool special = false;  // builds, reads a file, or something that only pip knows
};

Install read_install(std::string_view arguments) {
  Install out;
  const std::vector<std::string_view> words = split(arguments, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.empty() || word == "--no-deps" || word == "--no-cache-dir") continue;
    const bool index = word == "--index-url" || word == "--extra-index-url" || word == "--index";
    if (index && i + 1 < words.size())
      out.index = words[++i];
    else if (word == "--force-reinstall")
      out.again = true;
    else if (word == "--upgrade" || word == "-U")
      out.newest = true;
    else if (word[0] == '-' || word[0] == '.' || word[0] == '$' || contains(word, "/"))
      out.special = true;
    else
      out.wanted.emplace_back(word);
  }
  return out;
}

bool all_pinned(const Install& install) {
  return std::all_of(install.wanted.begin(), install.wanted.end(),
                     [](const std::string& one) { return one.find_first_of("=<>~") != one.npos; });
}

std::string name_of_index(std::string_view index) {
  while (ends_with(index, "/")) index.remove_suffix(1);
  return "pytorch-" + std::string(index.substr(index.rfind('/') + 1));
}

bool is_torch_index(const Install& install) {
  return contains(install.index, "download.pytorch.org/whl/");
}

std::string uv_pip(std::string_view python, std::string_view what, std::string_view arguments) {
  const bool plain = python == "python" || python == "python3";
  if (starts_with(arguments, "-y ")) arguments.remove_prefix(3);  // uv asks nothing
  return "uv pip " + std::string(what) + (plain ? "" : " --python " + std::string(python)) +
         with_blank(arguments);
}

std::string in_uv_project(std::string_view python, std::string_view arguments) {
  const Install install = read_install(arguments);
  if (install.special || install.wanted.empty()) return uv_pip(python, "install", arguments);
  const std::string names = join(install.wanted, " ");
  if (install.again && !all_pinned(install))
    return "uv sync --reinstall-package " + join(install.wanted, " --reinstall-package ");
  std::string out = "uv add " + names;
  if (install.newest) out += " --upgrade-package " + join(install.wanted, " --upgrade-package ");
  if (install.index.empty()) return out;
  return out + " --index " + (is_torch_index(install) ? name_of_index(install.index) + "=" : "") +
         std::string(install.index);
}

std::string by_poetry(std::string_view arguments) {
  const Install install = read_install(arguments);
  if (install.special || install.wanted.empty() || (install.again && !all_pinned(install)))
    return "poetry run python -m pip install" + with_blank(arguments);
  const std::string names = join(install.wanted, " ");
  if (install.newest && !all_pinned(install)) return "poetry update " + names;
  if (!is_torch_index(install)) return "poetry add " + names;
  const std::string name = name_of_index(install.index);
  return "poetry source add --priority=explicit " + name + " " + std::string(install.index) +
         " && poetry add --source " + name + " " + names;
}

std::string by_uvx(std::string_view arguments) {
  const Install install = read_install(arguments);
  std::string out = "uvx";
  for (const std::string& one : install.wanted) out += " --with " + one;
  if (!install.index.empty())
    out += " --index " + std::string(install.index) + " --index-strategy unsafe-best-match";
  return out;
}

std::string pip_of(Keeper keeper, std::string_view python, std::string_view what,
                   std::string_view arguments) {
  const bool uv = keeper != Keeper::poetry;
  if (what == "install") {
    if (keeper == Keeper::uv) return uv_pip(python, what, arguments);
    if (keeper == Keeper::uv_project) return in_uv_project(python, arguments);
    return keeper == Keeper::uvx ? by_uvx(arguments) : by_poetry(arguments);
  }
  const bool known = what == "uninstall" || what == "list" || what == "show" || what == "check" ||
                     what == "freeze";
  if (uv && known && keeper != Keeper::uvx) return uv_pip(python, what, arguments);
  return (uv ? std::string(python) : "poetry run python") + " -m pip " + std::string(what) +
         with_blank(arguments);
}

// One command: what stands before its Python (a variable that is set for it) stays.
std::string command(std::string_view code, Keeper keeper) {
  const size_t pip = code.find(k_pip);
  if (pip != code.npos) {
    const bool quoted = pip > 0 && code[pip - 1] == '\'';
    size_t begin = quoted ? code.rfind('\'', pip - 2) : code.rfind(' ', pip - 1);
    begin = begin == code.npos ? 0 : begin + (quoted ? 0 : 1);
    const std::string_view python = code.substr(begin, pip - begin);
    std::string_view rest = code.substr(pip + k_pip.size());
    if (!contains(python, "python")) return std::string(code);
    // What follows a pipe is another command.
    const size_t pipe = std::min(rest.find(" | "), rest.size());
    const std::string_view behind = rest.substr(pipe);
    rest = rest.substr(0, pipe);
    const size_t blank = std::min(rest.find(' '), rest.size());
    const std::string_view arguments =
        blank < rest.size() ? rest.substr(blank + 1) : std::string_view();
    return std::string(code.substr(0, begin)) +
           pip_of(keeper, python, rest.substr(0, blank), arguments) + std::string(behind);
  }
  const bool runs = keeper == Keeper::uv_project || keeper == Keeper::poetry;
  if (runs && starts_with(code, k_code))
    return (keeper == Keeper::poetry ? "poetry run " : "uv run ") + std::string(code);
  return std::string(code);
}

std::string commands(std::string_view code, Keeper keeper) {
  std::string out;
  for (size_t at = code.find(" && "); at != code.npos; at = code.find(" && ")) {
    out += command(code.substr(0, at), keeper) + " && ";
    code.remove_prefix(at + 4);
  }
  return out + command(code, keeper);
}

}  // namespace

std::string for_keeper(std::string_view text, Keeper keeper) {
  if (keeper == Keeper::none) return std::string(text);
  const std::vector<std::string_view> parts = split(text, '`');
  if (parts.size() == 1) return commands(text, keeper);  // the command alone
  if (parts.size() % 2 == 0) return std::string(text);   // a backtick of the text's own
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i)
    out += i % 2 == 1 ? "`" + commands(parts[i], keeper) + "`" : std::string(parts[i]);
  return out;
}

}  // namespace cufit::report
