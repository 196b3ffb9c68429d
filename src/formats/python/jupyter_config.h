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
// Of a command line or a shell script, in their order; lines that do not name jupyter are read too,
// as commands go over several lines.
std::vector<JupyterSetting> parse_jupyter_options(std::string_view text);

}  // namespace cufit::formats
