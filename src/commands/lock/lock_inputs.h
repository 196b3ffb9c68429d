// SPDX-License-Identifier: Apache-2.0
// What `cufit lock` locks: requirements of the command line, of requirements.txt files and of
// pyproject.toml. The installer reads the files itself; cufit reads them for what they say of
// torch.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/python/requirement.h"
#include "host/files/host.h"
#include "resolve/wheel/resolve.h"

namespace cufit::commands {

struct LockInputs {
  std::vector<std::string> files;   // as the installer takes them, from the working directory
  std::vector<std::string> extras;  // of a pyproject.toml
  std::vector<std::string> asked;   // requirements of the command line, as written
  // Everything the files and the command line ask for, markers that do not hold on Linux left out;
  // nested files and constraints counted in.
  std::vector<formats::Requirement> requirements;
  std::vector<std::string> texts;  // the direct ones as written, in order, for cufit.lock
  std::vector<resolve::PythonDemand> pythons;  // `requires-python` of each pyproject.toml
};

// Error{usage} where a file does not exist or is neither; Error{malformed} with file and line.
// `host`: where the files lie.
Result<LockInputs> read_lock_inputs(const host::Host& host, const std::vector<std::string>& files,
                                    const std::vector<std::string>& extras,
                                    const std::vector<std::string>& asked,
                                    const std::string& python);

}  // namespace cufit::commands
