// SPDX-License-Identifier: Apache-2.0
// The program that resolves and installs packages. cufit decides which torch suits which hardware;
// `uv` finds the rest, downloads and installs (hard links from its cache let environments share
// their files); `pip` is the fallback for installing. Both run as children without a shell.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/python/pylock.h"
#include "host/process/child_process.h"
#include "host/files/host.h"

namespace cufit::host {

struct Installer {
  enum class Kind { uv, pip, conda, pixi } kind = Kind::uv;
  std::vector<std::string> command;  // {"/usr/bin/uv"}; {"/usr/bin/python3", "-m", "pip"}
  std::string version;               // "0.13.9"; empty = a pip that comes with the environment
  std::string program = {};          // of kind conda: "conda", "mamba", "micromamba"
  std::string name() const;          // "uv 0.13.9"
};

// CUFIT_UV, then PATH, the active environment's bin, `python3 -m uv`. A CUFIT_UV that does not run
// is an error, not passed over. Error{not_found} says how to get one.
Result<Installer> find_uv(const Host& host, Interrupts& interrupts);
// Whether find_uv() has somewhere to look: no program is run for it.
bool may_have_uv(const Host& host);
// uv, else the pip of `python` (empty: python3 of PATH).
Result<Installer> find_installer(const Host& host, const std::string& python,
                                 Interrupts& interrupts);

// The pip of `python` (empty: python3 of PATH), and no uv.
Result<Installer> find_pip(const Host& host, const std::string& python, Interrupts& interrupts);
// conda: CUFIT_CONDA, CONDA_EXE (a shell where conda is a function), conda, mamba or micromamba of
// PATH, MAMBA_EXE. pixi: CUFIT_PIXI, then PATH. Error{not_found} says how to go on.
Result<Installer> find_conda(const Host& host, Interrupts& interrupts);
Result<Installer> find_pixi(const Host& host, Interrupts& interrupts);

// Where packages come from, beside what the installer's own configuration says. URLs go to the
// child in its environment: they may hold passwords, and everybody can read a command line.
struct IndexChoice {
  std::vector<std::string> indexes;  // before all others, in order
  std::string default_index;         // in place of the installer's default; empty = leave it
  bool offline = false;
};

struct CompileRequest {
  std::vector<std::string> inputs;    // requirements.txt, pyproject.toml, ...: as uv takes them
  std::vector<std::string> extras;    // of a pyproject.toml
  std::string constraints;            // a file; empty = none
  std::string python;                 // "3.12"
  std::string platform;               // "x86_64-manylinux_2_28"
  std::string torch_backend;          // "cu126"; empty = none, whatever UV_TORCH_BACKEND says
  std::vector<std::string> left_out;  // resolved, but not written into the pylock
  IndexChoice index;
  std::string output;  // a pylock; versions of one that is there are kept
};

// uv pip compile. Error{malformed} = no solution, with uv's explanation; Error{io} = another
// failure, with its last lines.
Result<void> compile(const Installer& uv, const CompileRequest& request, Interrupts& interrupts);

struct InstallRequest {
  std::string folder;        // of the environment
  std::string python;        // "3.12", or an interpreter
  std::string pylock;        // path
  std::string final_folder;  // where `folder` will be moved to
  IndexChoice index;
  bool show = false;      // the installer's progress goes to the terminal
  bool in_conda = false;  // the environment is conda's: what it put there stays
};

// The interpreter inside an environment.
std::string interpreter_of(const std::string& folder);
// An environment without packages. It can be moved (uv), or is written for `final_folder` (pip).
Result<void> make_environment(const Installer& installer, const InstallRequest& request,
                              Interrupts& interrupts);
// Python (and pip, where `with_pip`) from conda-forge, and nothing else: the packages come from the
// lock. Made at `folder` and written for `final_folder`; nothing beside it is changed but the
// tool's own cache. Error{unsupported} where the tool cannot do what is asked.
Result<void> make_conda_environment(const Installer& tool, const InstallRequest& request,
                                    bool with_pip, Interrupts& interrupts);
// A conda environment holds its path in texts and in programs (up to a zero byte, which leaves room
// for a shorter one): `from` becomes `to`, which must not be longer. Byte code that holds it is
// removed; Python makes it again.
Result<void> relocate(const std::string& folder, const std::string& from, const std::string& to);
// Exactly the packages of the pylock, each by its hash.
Result<void> install(const Installer& installer, const InstallRequest& request,
                     const formats::Pylock& lock, Interrupts& interrupts);
// The installer's cache; empty where it does not tell.
std::string cache_folder(const Installer& installer, Interrupts& interrupts);

// "name @ url --hash=sha256:..." for each package that applies, as pip wants them.
// Error{unsupported} where a package has no wheel or archive with a hash.
Result<std::string> pip_requirements(const formats::Pylock& lock, const std::string& python,
                                     const std::string& machine);

}  // namespace cufit::host
