// SPDX-License-Identifier: Apache-2.0
// What a configuration of Jupyter sets (traitlets): Python files whose lines are
// `c.ServerApp.token = ""`, JSON files {"ServerApp": {"token": ""}}, and options of a command line
// (`--ServerApp.token=''`, `--ip=0.0.0.0`, `--allow-root`). Python is not run: what is no literal
// is told as such.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/system/shell_commands.h"

namespace cufit::formats {

enum class JupyterValue { text, boolean, other };  // other: a number, None, an expression

struct JupyterSetting {
  std::string object;  // "ServerApp", "IdentityProvider"; of `--ip` and its like "ServerApp"
  std::string name;    // "token"
  JupyterValue kind = JupyterValue::other;
  std::string value;  // of a text without quotes; "true", "false"; of others as written
  uint32_t line = 0;  // 0 in JSON
};

// At most 2 000 settings each.
std::vector<JupyterSetting> parse_jupyter_python(std::string_view text);
std::vector<JupyterSetting> parse_jupyter_json(std::string_view text);
// Whether the command starts a server: `jupyter lab`, `python -m notebook`, `jupyter-server`.
bool starts_jupyter(const ShellCommand& command);
// Options of the commands that start a server, in their order, and of variables and lists that are
// handed to one (`ARGS="--ip=0.0.0.0"`). Options of other programs are theirs.
std::vector<JupyterSetting> parse_jupyter_options(const std::vector<ShellCommand>& commands);

}  // namespace cufit::formats
