// SPDX-License-Identifier: Apache-2.0
// Who keeps the Python environment of a text, by the commands and files that it shows: what pip puts
// into a project of uv is gone after the next `uv sync`, and a venv of uv has no pip.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cufit::explain {

enum class Keeper : uint8_t {
  none,        // pip, conda, or not told
  uv,          // a venv that uv fills; no lock
  uv_project,  // uv.lock or pyproject.toml
  uvx,         // an environment for one call of a tool
  poetry,
  pdm,
  pipenv,
};

// One of these is in every line that the two below look for (word_lines.h).
constexpr std::string_view k_keeper_words =
    "uv |uv.lock|tool.uv|uvx|poetry|pdm|pipenv|pipfile| install";

Keeper read_keeper(std::span<const std::string> lines);
// "speechtool" of "uvx --with extra speechtool serve"; empty: the text does not name it.
std::string uvx_tool(std::span<const std::string> lines);

}  // namespace cufit::explain
