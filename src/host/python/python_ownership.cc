// SPDX-License-Identifier: Apache-2.0
// Who may put packages into a Python, and with what: PEP 668's marker of a distribution's own
// Python, whether `-m venv` works, the lock file that an environment follows, and uv.
#include "host/python/python_ownership.h"

#include "base/format.h"
#include "base/path.h"
#include "formats/python/python_metadata.h"
#include "host/python/project_file.h"

namespace cufit::host {
namespace {

// The standard library that this environment uses: of a venv that of the Python behind it.
std::string stdlib_of(const Host& host, const PythonPrefix& prefix) {
  const std::string minor = prefix.minor_version();
  if (minor.empty()) return {};
  std::string base = prefix.path;
  if (prefix.kind == "venv") {
    const auto text = host.read_file(prefix.path + "/pyvenv.cfg", 1u << 20);
    if (!text) return {};
    base.clear();
    for (const auto& [name, value] : formats::parse_pyvenv_cfg(*text))
      if (name == "home") base = parent_folder(value);  // "/usr/bin" -> "/usr"
  }
  if (base.empty()) return {};
  for (const char* lib : {"lib", "lib64"}) {
    const std::string folder = (base == "/" ? "" : base) + "/" + lib + "/python" + minor;
    if (host.exists(folder + "/os.py")) return folder;
  }
  return {};
}

}  // namespace

void read_ownership(const Host& host, const PythonPrefix& prefix, facts::PythonEnv& env) {
  const std::string stdlib = stdlib_of(host, prefix);
  if (!stdlib.empty()) {
    const std::string marker = stdlib + "/EXTERNALLY-MANAGED", ensure = stdlib + "/ensurepip";
    // pip looks for the marker outside of virtual environments alone.
    if (prefix.kind != "venv")
      env.externally_managed =
          host.exists(marker) ? known(marker, SourceKind::file, marker)
                              : missing<std::string>(WhyNot::not_present, SourceKind::file, marker);
    env.makes_venv = known(host.exists(ensure + "/__init__.py"), SourceKind::file, ensure);
  }
  if (env.installer == "pixi") {
    env.project = prefix.real_path.substr(0, prefix.real_path.find("/.pixi/envs/"));
    read_project_file(host, env);
  }
  // pipenv writes the project's folder into an environment that lies elsewhere.
  const auto elsewhere = host.read_file(prefix.path + "/.project", 1u << 12);
  if (elsewhere && host.exists(std::string(trim(*elsewhere)) + "/Pipfile")) {
    env.project = std::string(trim(*elsewhere));
    env.installer = "pipenv";
  }
  if (!ends_with(prefix.real_path, "/.venv")) return;
  const std::string folder = parent_folder(prefix.real_path);
  for (const auto& [lock, installer] : {std::pair{"uv.lock", "uv"},
                                        {"poetry.lock", "poetry"},
                                        {"pdm.lock", "pdm"},
                                        {"Pipfile.lock", "pipenv"}}) {
    if (!host.exists(folder + "/" + lock)) continue;
    env.project = folder;
    env.installer = installer;
    read_project_file(host, env);
    return;
  }
}

// "Uid:\t0\t0\t0\t0": real, effective, saved, of files.
void read_root(const Host& host, facts::SystemFacts& system) {
  const char* const k_status = "/proc/self/status";
  const Result<std::string> text = host.read_file(k_status, 1u << 16);
  if (!text) return;
  for (const std::string_view line : split_lines(*text)) {
    if (!starts_with(line, "Uid:")) continue;
    const std::vector<std::string_view> ids = split(trim(line.substr(4)), '\t');
    if (ids.size() > 1) system.root = known(ids[1] == "0", SourceKind::file, k_status);
  }
}

void read_uv(const Host& host, facts::SystemFacts& system) {
  const std::string path = host.variable("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const std::string_view folder : split(path, ':')) {
    if (folder.empty()) continue;
    const std::string program = std::string(folder) + "/uv";
    const auto status = host.status(program);
    if (!status || status->is_directory || (status->mode & 0111) == 0) continue;
    system.uv = known(program, SourceKind::file, program);
    return;
  }
  system.uv = missing<std::string>(WhyNot::not_present, SourceKind::env, "PATH");
}

}  // namespace cufit::host
