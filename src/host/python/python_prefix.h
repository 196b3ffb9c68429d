// SPDX-License-Identifier: Apache-2.0
// Which Python installations and virtual environments this machine has and where their packages
// lie, found from files and variables as Python's own start-up does (site.py, getpath.py); no
// Python is run. Used by host/python/python_envs. Not followed: sitecustomize, `import` lines of
// .pth files, zip imports, registry shims other than pyenv's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fact.h"
#include "host/files/host.h"

namespace cufit::host {

struct PythonPrefix {
  std::string path;  // of the environment, as found
  std::string real_path;
  std::string kind;  // "venv", "conda", "system", "image", "folder" (only packages, no interpreter)
  std::string found_by;   // "--env", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "default"
  std::string installer;  // "pip", "uv", "conda", "poetry", "pixi"
  bool active = false;
  Fact<std::string> python;  // "3.12.3" or, when the patch level is written nowhere, "3.12"
  Fact<std::string> interpreter;
  Fact<std::string> base;                  // PythonEnv::base_python
  std::vector<std::string> site_packages;  // folders of sys.path that hold packages, in order
  std::string minor_version() const;       // "3.12"; empty = unknown
};

struct PythonSearch {
  std::vector<std::string> env_dirs;  // --env; empty: the environments found by themselves
  bool user_site = true;              // as of ProbeOptions
  // Also where tools keep them (virtualenvs, conda, poetry, uv, pipx) and beside the current folder;
  // of these only those with torch.
  bool everywhere = false;
  std::optional<bool> in_image;  // nullopt: told by files of container engines
};

// The active one first, then in order of discovery; each real folder once. `problems` gets what a
// --env is not.
std::vector<PythonPrefix> find_python_prefixes(const Host& host, const PythonSearch& search,
                                               std::vector<std::string>& problems);

}  // namespace cufit::host
