// SPDX-License-Identifier: Apache-2.0
// Commands that change what a project asks for, so that the next sync of its lock keeps it: of uv,
// pdm, pipenv and pixi. An index for torch must serve torch alone.
#pragma once

#include <string>
#include <string_view>

#include "checks/install/installer.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

// The release has wheels for the oldest Python that the project is for; what is not known is no
// reason against it. (uv, poetry and pdm refuse a release that leaves out a part of the range.)
bool suits_project(const facts::PythonEnv& env, const knowledge::TorchRelease& release);
// `sed ... && `: takes the Pythons out of requires-python that the torch of the request has no wheels
// for; empty: there are none, or how it is written is not known.
std::string raised_python(const Input& input, const facts::PythonEnv& env, const Owner& owner,
                          const InstallRequest& request);
// One of the packages is bound to an index of the project, which the default one does not replace.
bool is_bound_to_index(const facts::PythonEnv& env);

// Of an index: what is bound to it, and what comes from the default one as before. (An installer of
// projects binds all packages of one command to the index that it names.)
struct ByIndex {
  std::string on_index, beside;  // words with a blank before each; quoted
};
ByIndex by_index(const InstallRequest& request);
bool is_on_torch_index(std::string_view requirement);

// `sed ...` that makes an index of a pyproject.toml explicit: uv takes every package from the first
// index that has it, and PyTorch's has old ones of many. `uv add` itself has no option for it.
std::string make_explicit(std::string_view index_name, std::string_view pyproject);

std::string in_uv_project(const facts::PythonEnv& env, const Owner& owner,
                          const InstallRequest& request);
std::string by_pdm(const Owner& owner, const InstallRequest& request);
std::string by_pipenv(const Owner& owner, const InstallRequest& request);
// Of the default Python index: torch, and what was not of conda before. `python`: a change of it.
std::string by_pixi(const facts::PythonEnv& env, const Owner& owner, const InstallRequest& request,
                    const std::string& python = {});
// " --manifest-path FOLDER --feature NAME"
std::string pixi_place(const facts::PythonEnv& env, const Owner& owner);

}  // namespace cufit::checks
