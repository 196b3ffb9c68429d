// SPDX-License-Identifier: Apache-2.0
// Which programs make the environments of `cufit env create`: what `--installer` names, else by the
// project files beside the lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "commands/command.h"
#include "host/install/installer.h"

namespace cufit::commands {

using EnvTool = host::Installer::Kind;
constexpr std::string_view k_env_tools = "uv pip conda pixi";  // in the order of EnvTool
std::string_view env_tool_word(EnvTool tool);                  // "conda"

struct EnvTools {
  host::Installer installer;             // of the packages
  std::optional<host::Installer> maker;  // conda or pixi, where it makes the environment
  std::string cache;                     // of the installer; empty where it does not tell
};
// Says on stderr what a project file has decided. Errors as of find_uv() and the others.
Result<EnvTools> find_env_tools(const Context& context, const std::optional<EnvTool>& asked,
                                const std::string& lock_folder, host::Interrupts& interrupts);

}  // namespace cufit::commands
