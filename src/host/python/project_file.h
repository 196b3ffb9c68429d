// SPDX-License-Identifier: Apache-2.0
// What a project's own file (pyproject.toml, pixi.toml) says that a package which is added meets:
// the Pythons it is for, and from which index torch comes.
#pragma once

#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

// Fills project_python, project_indexes and project_packages of an environment whose project and
// installer are known. A file that cannot be read or is no TOML says nothing.
void read_project_file(const Host& host, facts::PythonEnv& env);

}  // namespace cufit::host
