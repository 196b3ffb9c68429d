// SPDX-License-Identifier: Apache-2.0
// Commands that install torch into an environment the way its owner does (installer.h). No command
// names a wheel that is not in data/wheels.toml, but for a torch that is newer than the table. Empty
// where there is no wheel to name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/check.h"
#include "checks/install/installer.h"
#include "checks/wheel_pick.h"

namespace cufit::checks {

// torch "2.14.1", tag "cu126", with the torchvision and torchaudio that are installed. A release or
// variant of which there is no wheel: the wheel that fits the machine.
std::string install_command(const Input& input, const facts::PythonEnv& env,
                            const std::string& torch, const std::string& tag);
// The same wheel, so that the installer adds what it requires and is not there; what is there
// stays. Empty: conda, pixi, or a wheel that the tables do not know.
std::string complete_command(const Input& input, const facts::PythonEnv& env,
                             const std::string& torch, const std::string& tag);
// The same wheel again, torch alone, because its files are damaged or gone.
std::string repair_command(const Input& input, const facts::PythonEnv& env,
                           const std::string& torch, const std::string& tag);
// Only torchvision and torchaudio: this torch is installed and stays.
std::string partners_command(const Input& input, const facts::PythonEnv& env,
                             const std::string& torch, const std::string& tag);
// Into a new environment with another Python ("3.12"), beside this one. uv fetches that Python.
std::string install_in_new(const Input& input, const facts::PythonEnv& env,
                           const std::string& torch, const std::string& tag,
                           const std::string& python);
// Into a new environment of whatever Python is there, because this one has none any more.
std::string install_beside(const Input& input, const facts::PythonEnv& env,
                           const std::string& torch, const std::string& tag);
// The command for a wheel; where none fits the environment's Python, into a new one with another.
std::string install_text(const Input& input, const facts::PythonEnv& env,
                         const std::optional<WheelPick>& pick);
// Any packages: "nvidia-cudnn-cu13==9.19.0.56". Each has its version.
std::string install_packages(const Input& input, const facts::PythonEnv& env,
                             const std::vector<std::string>& requirements,
                             InstallKind kind = InstallKind::change);
// What fills the environment of the project one stands in, by SystemFacts::project_lock, where it is
// not there or has no torch; empty: there is no such project, it has no lock (a requirements.txt
// names no wheels), or uv is not here.
std::string install_project(const Input& input);
// "/env/bin/python -m pip install", of uv where that is the owner: for a build from source, which
// conda cannot do.
std::string pip_install_of(const facts::PythonEnv& env);
// Where PyTorch's own wheels of this variant lie.
std::string pytorch_index(const Input& input, const std::string& tag);

// A text shows conda's torch and no path: it is removed first (its channel ended with 2.5), then
// pip installs torch and torchvision. The command is pip's alone.
bool replaces_conda_torch(const facts::PythonEnv& env);
// The environment's interpreter; "python" where its path is not known. Not quoted.
std::string python_of(const facts::PythonEnv& env);
// The same as the first word of a command, quoted for its shell.
std::string python_word(const facts::PythonEnv& env);

}  // namespace cufit::checks
