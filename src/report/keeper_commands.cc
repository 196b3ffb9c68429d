// SPDX-License-Identifier: Apache-2.0
#include "report/keeper_commands.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "checks/install/project.h"

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
  bool beside = false;   // the index is an extra one
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
      out.index = words[++i], out.beside = word == "--extra-index-url";
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

bool is_pinned(const std::string& one) { return one.find_first_of("=<>~") != one.npos; }
bool all_pinned(const Install& install) {
  return std::all_of(install.wanted.begin(), install.wanted.end(), is_pinned);
}
bool any_pinned(const Install& install) {
  return std::any_of(install.wanted.begin(), install.wanted.end(), is_pinned);
}

// " --reinstall-package torch --reinstall-package ...": names alone, without quotes.
std::string each_name(std::string_view option, const Install& install) {
  std::string out;
  for (const std::string& one : install.wanted) {
    const size_t begin = one.find_first_not_of("\"'");
    if (begin == one.npos) continue;
    const size_t end = std::min(one.find_first_of("=<>~![;\"'", begin), one.size());
    out += " " + std::string(option) + " " + one.substr(begin, end - begin);
  }
  return out;
}

std::string name_of_index(std::string_view index) {
  while (ends_with(index, "/")) index.remove_suffix(1);
  return "pytorch-" + std::string(index.substr(index.rfind('/') + 1));
}

std::string_view without_quotes(std::string_view one) {
  return one.substr(std::min(one.find_first_not_of("\"'"), one.size()));
}

// Of PyTorch's own index alone: its last part ("cu126") becomes a name that sed looks for.
bool is_torch_index(const Install& install) {
  std::string_view url = install.index;
  while (ends_with(url, "/")) url.remove_suffix(1);
  const std::string_view last = url.substr(url.rfind('/') + 1);
  return contains(url, "download.pytorch.org/whl/") &&
         std::all_of(last.begin(), last.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
         });
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
  if (install.again && !any_pinned(install))
    return "uv sync" + each_name("--reinstall-package", install);
  const std::string options =
      (install.again ? each_name("--reinstall-package", install) : std::string()) +
      (install.newest ? each_name("--upgrade-package", install) : std::string());
  if (install.index.empty()) return "uv add " + names + options;
  if (!is_torch_index(install))
    return "uv add " + names + options + " --index " + std::string(install.index);
  const std::string name = name_of_index(install.index);
  std::string there, others;
  for (const std::string& one : install.wanted) {
    (!install.beside || checks::is_on_torch_index(without_quotes(one)) ? there : others) +=
        " " + one;
  }
  if (there.empty()) return "uv add" + others + options;
  if (!others.empty()) others = " && uv add --frozen" + others;
  return "uv add --frozen" + there + " --index " + name + "=" + std::string(install.index) +
         others + " && " + checks::make_explicit(name, "pyproject.toml") + " && uv sync --inexact" +
         options;
}

// "onnxruntime-gpu[cuda]@latest": of what is new to the project as well, which `update` refuses.
std::string newest(const Install& install) {
  std::string out;
  for (std::string one : install.wanted) {
    const size_t quote = one.size() > 1 && (one.back() == '"' || one.back() == '\'') ? 1 : 0;
    out += " " + one.insert(one.size() - quote, "@latest");
  }
  return out;
}

std::string by_poetry(std::string_view arguments) {
  const Install install = read_install(arguments);
  if (install.special || install.wanted.empty() || (install.again && !all_pinned(install)))
    return "poetry run python -m pip install" + with_blank(arguments);
  const std::string names = join(install.wanted, " ");
  if (install.newest && !any_pinned(install)) return "poetry add" + newest(install);
  if (install.index.empty()) return "poetry add " + names;
  const std::string name = is_torch_index(install) ? name_of_index(install.index) : "extra";
  return "poetry source add --priority=explicit " + name + " " + std::string(install.index) +
         " && poetry add --source " + name + " " + names;
}

// pdm asks all its indexes and takes the newest release; +cu126 is on this one alone.
std::string by_pdm(std::string_view arguments) {
  const Install install = read_install(arguments);
  if (install.special || install.wanted.empty())
    return "pdm run python -m pip install" + with_blank(arguments);
  const std::string names = join(install.wanted, " ");
  if (install.newest && !any_pinned(install)) return "pdm update --unconstrained " + names;
  const std::string again = install.again ? " && pdm sync --reinstall" : "";
  if (install.index.empty()) return "pdm add " + names + again;
  const std::string name = is_torch_index(install) ? name_of_index(install.index) : "extra";
  return "pdm config --local pypi." + name + ".url " + std::string(install.index) + " && pdm add " +
         names + again;
}

std::string by_pipenv(std::string_view arguments) {
  const Install install = read_install(arguments);
  if (install.special || install.wanted.empty() || install.again)
    return "pipenv run python -m pip install" + with_blank(arguments);
  std::string out;
  std::string there, others;
  for (const std::string& one : install.wanted) {
    const bool bound = !install.index.empty() &&
                       (!install.beside || checks::is_on_torch_index(without_quotes(one)));
    (bound ? there : others) += " " + one;
  }
  if (!there.empty()) out = "pipenv install" + there + " --index " + std::string(install.index);
  if (!others.empty()) out += (out.empty() ? "" : " && ") + ("pipenv install" + others);
  return out;
}

std::string by_uvx(std::string_view python, std::string_view arguments, std::string_view tool) {
  const Install install = read_install(arguments);
  if (install.special || install.wanted.empty())
    return std::string(python) + " -m pip install" + with_blank(arguments);
  std::string out = "uvx";
  for (const std::string& one : install.wanted) out += " --with " + one;
  if (!install.index.empty())
    out += " --index " + std::string(install.index) + " --index-strategy unsafe-best-match";
  return out + " " + (tool.empty() ? "PROGRAM" : std::string(tool));
}

// Who keeps the environment, and what uvx runs.
struct Kept {
  Keeper keeper;
  std::string_view tool;
};

std::string pip_of(const Kept& kept, std::string_view python, std::string_view what,
                   std::string_view arguments) {
  const Keeper keeper = kept.keeper;
  if (keeper == Keeper::pdm || keeper == Keeper::pipenv) {
    const std::string program = keeper == Keeper::pdm ? "pdm" : "pipenv";
    if (what == "install") return keeper == Keeper::pdm ? by_pdm(arguments) : by_pipenv(arguments);
    if (what == "uninstall") {
      if (starts_with(arguments, "-y ")) arguments.remove_prefix(3);
      return program + (keeper == Keeper::pdm ? " remove" : " uninstall") + with_blank(arguments);
    }
    return program + " run python -m pip " + std::string(what) + with_blank(arguments);
  }
  const bool uv = keeper != Keeper::poetry;
  if (what == "install") {
    if (keeper == Keeper::uv) return uv_pip(python, what, arguments);
    if (keeper == Keeper::uv_project) return in_uv_project(python, arguments);
    return keeper == Keeper::uvx ? by_uvx(python, arguments, kept.tool) : by_poetry(arguments);
  }
  const bool known = what == "uninstall" || what == "list" || what == "show" || what == "check" ||
                     what == "freeze";
  if (uv && known && keeper != Keeper::uvx) return uv_pip(python, what, arguments);
  return (uv ? std::string(python) : "poetry run python") + " -m pip " + std::string(what) +
         with_blank(arguments);
}

// One command: what stands before its Python (a variable that is set for it) stays.
std::string command(std::string_view code, const Kept& kept) {
  const Keeper keeper = kept.keeper;
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
           pip_of(kept, python, rest.substr(0, blank), arguments) + std::string(behind);
  }
  const char* const runs = keeper == Keeper::uv_project ? "uv run "
                           : keeper == Keeper::poetry   ? "poetry run "
                           : keeper == Keeper::pdm      ? "pdm run "
                           : keeper == Keeper::pipenv   ? "pipenv run "
                                                        : nullptr;
  if (runs != nullptr && starts_with(code, k_code)) return runs + std::string(code);
  return std::string(code);
}

std::string commands(std::string_view code, const Kept& kept) {
  std::string out;
  for (size_t at = code.find(" && "); at != code.npos; at = code.find(" && ")) {
    out += command(code.substr(0, at), kept) + " && ";
    code.remove_prefix(at + 4);
  }
  return out + command(code, kept);
}

}  // namespace

std::string for_keeper(std::string_view text, Keeper keeper, std::string_view tool) {
  const Kept kept{keeper, tool};
  if (keeper == Keeper::none) return std::string(text);
  const std::vector<std::string_view> parts = split(text, '`');
  if (parts.size() == 1) return commands(text, kept);   // the command alone
  if (parts.size() % 2 == 0) return std::string(text);  // a backtick of the text's own
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i)
    out += i % 2 == 1 ? "`" + commands(parts[i], kept) + "`" : std::string(parts[i]);
  return out;
}

}  // namespace cufit::report
