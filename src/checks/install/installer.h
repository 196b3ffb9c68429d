// SPDX-License-Identifier: Apache-2.0
// Who installs into an environment, and the command for any packages. Every install step of every
// report is made here (torch and its partners: torch_command.cc), so that a change to how one
// installer is called is a change of one line. Pure: what is known of installers are facts
// (PythonEnv::installer, project, externally_managed, makes_venv, SystemFacts::uv).
#pragma once

#include <string>
#include <vector>

#include "checks/check.h"

namespace cufit::checks {

enum class Installer {
  pip,
  uv,          // a venv that uv made or fills; no lock
  uv_project,  // the .venv of a uv.lock: `uv add`, or the next `uv sync` takes it out again
  poetry,
  pdm,
  pipenv,
  pixi,
  conda,
  image,     // the Python of a container image: pip without its cache
  new_venv,  // a distribution's own Python, where pip refuses (PEP 668): a venv first
  lock,      // an environment of a cufit.lock: the lock is changed, not the environment
};

struct Owner {
  Installer installer = Installer::pip;
  std::string folder;      // of the project, or of the cufit.lock
  std::string lock_class;  // "cu126"
};

// `of_torch`: a torch of pip inside a conda environment is pip's, other packages are conda's.
Owner owner_of(const facts::PythonEnv& env, bool of_torch);

// repair: the version that is there again, because files of it are damaged or gone; an installer
// would call it satisfied. update: to the newest release; requirements are names alone.
enum class InstallKind { change, repair, update };

struct InstallRequest {
  std::vector<std::string> requirements;  // "nvidia-cudnn-cu13==9.19.0.56"; not quoted
  std::string index;                      // PyTorch's own, where the default index lacks them
  std::string index_name;                 // "pytorch-cu126"
  bool beside_default = false;            // some of them are on the default index alone
  InstallKind kind = InstallKind::change;
  // Of with_settings():
  std::string default_index = {};  // in place of the default Python index
  bool pip_knows_default = false;  // it is of pip's own settings
  bool uv_backend = false;         // UV_TORCH_BACKEND would choose another index
};
// With what this machine has set of indexes; install_command() does it by itself.
InstallRequest with_settings(const Input& input, InstallRequest request);
// One line for a shell; all that comes from outside is quoted. For Installer::conda and pixi the
// names are theirs, with `==` as `=`.
std::string install_command(const Input& input, const facts::PythonEnv& env, const Owner& owner,
                            const InstallRequest& request);
// `python -m venv FOLDER`. Debian and Ubuntu ship ensurepip apart, and it fails without: then the
// package comes first.
std::string venv_command(const Input& input, const facts::PythonEnv& env,
                         const std::string& folder);
// uv as this machine can call it: `first` gets it where it is not in PATH.
struct UvCall {
  std::string first;    // "/e/bin/python -m pip install uv && "; empty: it is there
  std::string program;  // "uv", "/e/bin/python -m uv"
};
UvCall uv_call(const Input& input, const facts::PythonEnv& env, const Owner& owner);
std::string uv_install(const std::string& uv, const std::string& python,
                       const InstallRequest& request);
// What stands behind `pip install`, with a blank before it.
std::string pip_arguments(const InstallRequest& request);
// The command that takes a package out.
std::string remove_command(const Input& input, const facts::PythonEnv& env,
                           const std::string& package);

}  // namespace cufit::checks
