// SPDX-License-Identifier: Apache-2.0
#include "commands/env/env_tools.h"

#include "base/format.h"
#include "formats/toml_text.h"

namespace cufit::commands {
namespace {

bool is_pixi_project(const host::Host& files, const std::string& path) {
  const Result<std::string> text = files.read_file(path, 1u << 20);
  const Result<formats::TomlDocument> document =
      text ? formats::parse_toml(*text, path) : Result<formats::TomlDocument>(text.error());
  if (!document) return false;
  const formats::TomlValue* tool = document->root.find("tool");
  return tool != nullptr && tool->find("pixi") != nullptr;
}

// The tool whose project file stands beside the lock; `file` says which. Nothing: uv, and pip where
// there is no uv.
std::optional<EnvTool> tool_of_project(const host::Host& files, const std::string& folder,
                                       std::string& file) {
  const auto is_there = [&](const char* name) {
    file = folder + "/" + name;
    return files.exists(file);
  };
  if (is_there("pixi.toml")) return EnvTool::pixi;
  if (is_there("pyproject.toml") && is_pixi_project(files, file)) return EnvTool::pixi;
  if (is_there("environment.yml") || is_there("environment.yaml")) return EnvTool::conda;
  file.clear();
  return std::nullopt;
}

// conda or pixi. One that only a project file asks for (`file`) may be absent.
Result<void> find_maker(const Context& context, EnvTool tool, const std::string& file,
                        EnvTools& out, host::Interrupts& interrupts) {
  const host::Host& here = context.files;
  const bool conda = tool == EnvTool::conda;
  Result<host::Installer> maker =
      conda ? host::find_conda(here, interrupts) : host::find_pixi(here, interrupts);
  const bool absent = !maker && maker.error().code == Code::not_found;
  const bool given = here.variable(conda ? "CUFIT_CONDA" : "CUFIT_PIXI").has_value();
  if (!maker && (file.empty() || given || !absent))
    return file.empty() ? maker.error() : std::move(maker.error()).in(file);
  if (maker) out.maker = std::move(*maker);
  if (!out.maker)
    context.output.print_error(
        format("{} is not found, though `{}` is there: the environments are made without it",
               env_tool_word(tool), file));
  else if (!file.empty())
    context.output.print_error(
        format("the environments' Python comes from {}, as `{}` is there; `--installer uv` "
               "makes them without",
               env_tool_word(tool), file));
  return {};
}

}  // namespace

std::string_view env_tool_word(EnvTool tool) {
  return split(k_env_tools, ' ')[static_cast<size_t>(tool)];
}

Result<EnvTools> find_env_tools(const Context& context, const std::optional<EnvTool>& asked,
                                const std::string& lock_folder, host::Interrupts& interrupts) {
  const host::Host& here = context.files;
  EnvTools out;
  std::string file;
  const std::optional<EnvTool> tool = asked ? asked : tool_of_project(here, lock_folder, file);
  if (tool == EnvTool::conda || tool == EnvTool::pixi)
    if (Result<void> done = find_maker(context, *tool, file, out, interrupts); !done)
      return done.error();
  Result<host::Installer> installer = tool == EnvTool::pip ? host::find_pip(here, "", interrupts)
                                      : !tool || (!out.maker && tool != EnvTool::uv)
                                          ? host::find_installer(here, "", interrupts)
                                          : host::find_uv(here, interrupts);
  const bool absent = !installer && installer.error().code == Code::not_found;
  if (out.maker && absent && !here.variable("CUFIT_UV"))
    installer = host::Installer{EnvTool::pip, {"pip"}, "", ""};  // its own, asked for with it
  if (!installer) return installer.error();
  out.installer = std::move(*installer);
  if (out.installer.kind == EnvTool::uv) out.cache = host::cache_folder(out.installer, interrupts);
  return out;
}

}  // namespace cufit::commands
