// SPDX-License-Identifier: Apache-2.0
// Environments whose Python conda or pixi makes. Written after the documentation of their options;
// tests have stand-ins for them.
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/format.h"
#include "base/version.h"
#include "host/files/atomic_write.h"
#include "host/install/environments.h"
#include "host/install/installer_run.h"

namespace cufit::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_channel = "conda-forge";

// "3.11" of the lock; its free-threaded builds are packages of another name.
Result<void> usual_python(const Installer& tool, const InstallRequest& request) {
  if (request.python.empty() || request.python.back() != 't') return {};
  return fail(
      Code::unsupported,
      format("{} has no Python {} that cufit can ask for: `cufit env create --installer uv`",
             tool.name(), request.python));
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return fail(Code::io, format("`{}` cannot be written", path));
  return {};
}

Result<void> run_conda(const Installer& tool, const InstallRequest& request, bool with_pip,
                       Interrupts& interrupts) {
  ChildOptions options;
  options.command = tool.command;
  for (const char* word : {"create", "--yes", "--prefix", request.folder.c_str(),
                           "--override-channels", "--channel", k_channel})
    options.command.emplace_back(word);
  if (tool.program == "conda") options.command.push_back("--no-default-packages");
  if (request.index.offline) options.command.push_back("--offline");
  options.command.push_back("python=" + request.python);
  if (with_pip) options.command.push_back("pip");
  // Else conda would note the folder in the user's ~/.conda/environments.txt.
  options.variables.emplace_back("CONDA_REGISTER_ENVS", "false");
  options.show = request.show;
  const Result<ChildOutcome> outcome = run_installer(
      tool, options, format("making an environment for Python {}", request.python), interrupts);
  if (!outcome) return outcome.error();
  return relocate(request.folder, request.folder, request.final_folder);
}

// pixi makes environments inside of a workspace only: one of its own beside, whose environment is
// moved out.
Result<void> run_pixi(const Installer& tool, const InstallRequest& request, bool with_pip,
                      Interrupts& interrupts) {
  if (request.index.offline)
    return fail(Code::unsupported,
                "pixi cannot work offline: leave `--offline` out, or "
                "`cufit env create --installer uv`");
  utsname machine{};
  const bool arm = uname(&machine) == 0 && std::strcmp(machine.machine, "aarch64") == 0;
  const std::string workspace = request.folder + ".pixi";
  struct Removed {
    const std::string& folder;
    ~Removed() { remove_tree(folder); }
  } removed{workspace};
  std::string manifest = format(
      "[workspace]\nname = \"cufit\"\nchannels = [\"{}\"]\nplatforms = [\"{}\"]\n\n"
      "[dependencies]\npython = \"{}.*\"\n",
      k_channel, arm ? "linux-aarch64" : "linux-64", request.python);
  if (with_pip) manifest += "pip = \"*\"\n";
  if (Result<void> done = write_file(workspace + "/pixi.toml", manifest); !done) return done;
  // The user's configuration may keep environments elsewhere.
  if (Result<void> done =
          write_file(workspace + "/.pixi/config.toml", "detached-environments = false\n");
      !done)
    return done;
  ChildOptions options;
  options.command = tool.command;
  const std::string path = workspace + "/pixi.toml";
  for (const char* word : {"install", "--manifest-path", path.c_str(), "--color", "never"})
    options.command.emplace_back(word);
  // Of a `pixi run` or `pixi shell` around this one; they say how another workspace is meant.
  for (const char* name :
       {"PIXI_FROZEN", "PIXI_LOCKED", "PIXI_PROJECT_MANIFEST", "PIXI_ENVIRONMENT_NAME"})
    options.variables.emplace_back(name, std::nullopt);
  options.show = request.show;
  const Result<ChildOutcome> outcome = run_installer(
      tool, options, format("making an environment for Python {}", request.python), interrupts);
  if (!outcome) return outcome.error();
  const std::string made = workspace + "/.pixi/envs/default";
  if (rename(made.c_str(), request.folder.c_str()) != 0)
    return fail(Code::io, format("`{}` cannot be moved: {}", made, std::strerror(errno)));
  return relocate(request.folder, made, request.final_folder);
}

// In place of every `from`; what follows it up to the next zero byte moves up, and zero bytes fill
// what that leaves.
void replace_padded(std::string& bytes, const std::string& from, const std::string& to) {
  for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at)) {
    const size_t end = std::min(bytes.find('\0', at), bytes.size());
    std::string text = bytes.substr(at, end - at);
    const size_t before = text.size();
    for (size_t i = text.find(from); i != std::string::npos; i = text.find(from, i + to.size()))
      text.replace(i, from.size(), to);
    text.resize(before, '\0');
    bytes.replace(at, before, text);
    at = end;
  }
}

Result<void> relocate_file(const fs::path& path, const std::string& from, const std::string& to) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  in.close();
  if (bytes.find(from) == std::string::npos) return {};
  std::error_code error;
  if (path.extension() == ".pyc") {  // its texts have their lengths before them
    fs::remove(path, error);
    return {};
  }
  if (bytes.find('\0') != std::string::npos) {
    replace_padded(bytes, from, to);
  } else {
    for (size_t at = bytes.find(from); at != std::string::npos;
         at = bytes.find(from, at + to.size()))
      bytes.replace(at, from.size(), to);
  }
  // A new file: another link of the old one may lie in the tool's cache.
  const fs::perms mode = fs::status(path, error).permissions();
  if (error ||
      replace_file(path.string(), bytes, {.mode = static_cast<uint32_t>(mode), .sync = false}) != 0)
    return fail(Code::io, format("`{}` cannot be written", path.string()));
  return {};
}

}  // namespace

Result<Installer> find_conda(const Host& host, Interrupts& interrupts) {
  const std::string given = host.variable("CUFIT_CONDA").value_or("");
  std::vector<std::string> places;
  if (!given.empty()) {
    places.push_back(given);
  } else {
    places = {host.variable("CONDA_EXE").value_or(""), program_in_path(host, "conda"),
              program_in_path(host, "mamba"), program_in_path(host, "micromamba"),
              host.variable("MAMBA_EXE").value_or("")};
  }
  std::string why;
  for (const std::string& place : places) {
    if (place.empty()) continue;
    Installer tool = ask_installer(Installer::Kind::conda, {place}, interrupts, why);
    if (interrupts.caught() != 0) return fail(Code::cancelled, why);
    tool.program = fs::path(place).filename().string();
    if (!tool.version.empty()) return tool;
  }
  if (!given.empty()) return fail(Code::not_found, format("CUFIT_CONDA: {}", why));
  if (!why.empty()) return fail(Code::io, format("conda cannot be used: {}", why));
  return fail(Code::not_found,
              "conda is not found: install it, name it by CUFIT_CONDA, or make the environments by "
              "uv: `cufit env create --installer uv`");
}

Result<Installer> find_pixi(const Host& host, Interrupts& interrupts) {
  const std::string given = host.variable("CUFIT_PIXI").value_or("");
  const std::string place = given.empty() ? program_in_path(host, "pixi") : given;
  std::string why;
  if (!place.empty()) {
    Installer tool = ask_installer(Installer::Kind::pixi, {place}, interrupts, why);
    if (interrupts.caught() != 0) return fail(Code::cancelled, why);
    if (!tool.version.empty()) return tool;
  }
  if (!given.empty()) return fail(Code::not_found, format("CUFIT_PIXI: {}", why));
  if (!why.empty()) return fail(Code::io, format("pixi cannot be used: {}", why));
  return fail(Code::not_found,
              "pixi is not found: install it, name it by CUFIT_PIXI, or make the environments by "
              "uv: `cufit env create --installer uv`");
}

Result<void> make_conda_environment(const Installer& tool, const InstallRequest& request,
                                    bool with_pip, Interrupts& interrupts) {
  if (Result<void> usual = usual_python(tool, request); !usual) return usual;
  return tool.kind == Installer::Kind::pixi ? run_pixi(tool, request, with_pip, interrupts)
                                            : run_conda(tool, request, with_pip, interrupts);
}

Result<void> relocate(const std::string& folder, const std::string& from, const std::string& to) {
  if (to.size() > from.size()) return fail(Code::io, format("`{}` is longer than `{}`", to, from));
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    const fs::file_status status = fs::symlink_status(it->path(), ignored);
    if (fs::is_regular_file(status)) {
      files.push_back(it->path());
    } else if (fs::is_symlink(status)) {
      const std::string target = fs::read_symlink(it->path(), ignored).string();
      if (!starts_with(target, from + "/")) continue;
      fs::remove(it->path(), ignored);
      fs::create_symlink(to + target.substr(from.size()), it->path(), ignored);
    }
  }
  if (error) return fail(Code::io, format("`{}`: {}", folder, error.message()));
  for (const fs::path& file : files)
    if (Result<void> done = relocate_file(file, from, to); !done) return done;
  return {};
}

}  // namespace cufit::host
