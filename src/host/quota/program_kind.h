// SPDX-License-Identifier: Apache-2.0
// What a program makes of LD_PRELOAD, and which torch it would import: read from its file, nothing is run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "host/files/host.h"

namespace cufit::host {

struct ProgramKind {
  enum class Links { dynamic, not_read, static_linked, musl, secure } links = Links::not_read;
  std::string path;              // of the machine code: the interpreter of a script
  std::optional<Version> torch;  // beside its Python; nullopt = none was found
};

// `variables`: "NAME=value", with which it will start.
ProgramKind read_program_kind(const Host& files, const std::string& program,
                              const std::vector<std::string>& variables);

}  // namespace cufit::host
