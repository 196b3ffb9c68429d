// SPDX-License-Identifier: Apache-2.0
#include "explain/keeper.h"

#include <re2/re2.h>

namespace cufit::explain {

Keeper read_keeper(std::span<const std::string> lines) {
  static const RE2 project(
      R"((?:^|[^\w-])uv (?:sync|add|lock|run|remove)\b|\buv\.lock\b|\btool\.uv\b)");
  static const RE2 venv(R"((?:^|[^\w-])uv (?:pip|venv)\b)");
  static const RE2 tool(R"((?:^|[^\w-])(?:uvx|uv tool run) +(?:--?)?[a-z])");
  static const RE2 poetry(
      R"((?:^|[^\w-])poetry (?:add|install|run|lock|update|shell)\b|\bpoetry\.lock\b|\btool\.poetry\b)");
  static const RE2 pdm(
      R"((?:^|[^\w-])pdm (?:add|install|run|sync|lock|update)\b|\bpdm\.lock\b|\btool\.pdm\b)");
  static const RE2 pipenv(
      R"((?:^|[^\w-])pipenv (?:install|run|sync|lock|update|shell)\b|\bPipfile\b)");
  // What somebody typed himself in place of the keeper's own command.
  static const RE2 pip(R"((?:^|[$>#`] ?)(?:sudo )?(?:python[\d.]* -m )?pip[\d.]* install\b)");
  size_t of_project = 0, of_venv = 0, of_tool = 0, of_poetry = 0, of_pip = 0, of_pdm = 0,
         of_pipenv = 0;
  for (const std::string& line : lines) {
    of_project += RE2::PartialMatch(line, project);
    of_venv += RE2::PartialMatch(line, venv);
    of_tool += RE2::PartialMatch(line, tool);
    of_poetry += RE2::PartialMatch(line, poetry);
    of_pip += RE2::PartialMatch(line, pip);
    of_pdm += RE2::PartialMatch(line, pdm);
    of_pipenv += RE2::PartialMatch(line, pipenv);
  }
  const size_t of_others = of_project + of_venv + of_tool + of_poetry;
  if (of_pip > of_others + of_pdm + of_pipenv) return Keeper::none;
  if (of_pdm > of_others + of_pipenv) return Keeper::pdm;
  if (of_pipenv > of_others + of_pdm) return Keeper::pipenv;
  if (of_poetry > of_project + of_venv) return Keeper::poetry;
  if (of_project > 0) return Keeper::uv_project;
  if (of_tool > 0 && of_venv == 0) return Keeper::uvx;
  return of_venv > 0 ? Keeper::uv : Keeper::none;
}

std::string uvx_tool(std::span<const std::string> lines) {
  static const RE2 call(
      R"((?:^|[^\w-])(?:uvx|uv tool run)((?: +-{1,2}[a-z-]+(?:=\S+| +[^\s-]\S*)?)*) +([a-z][\w.-]*))");
  for (const std::string& line : lines) {
    std::string options, tool;
    if (RE2::PartialMatch(line, call, &options, &tool)) return tool;
  }
  return {};
}

}  // namespace cufit::explain
