// SPDX-License-Identifier: Apache-2.0
// Who may put packages into a Python, and with what. Reads files alone.
#pragma once

#include "facts/facts.h"
#include "host/files/host.h"
#include "host/python/python_prefix.h"

namespace cufit::host {

// Fills externally_managed, makes_venv and what is of the project; corrects installer where a lock
// of uv, poetry, pdm or pipenv lies beside the environment.
void read_ownership(const Host& host, const PythonPrefix& prefix, facts::PythonEnv& env);
// Fills SystemFacts::uv: the first uv in PATH.
void read_uv(const Host& host, facts::SystemFacts& system);

// Fills SystemFacts::root.
void read_root(const Host& host, facts::SystemFacts& system);

}  // namespace cufit::host
