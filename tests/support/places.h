// SPDX-License-Identifier: Apache-2.0
// Where the tests find the source tree, the build folder and the program. The build knows them;
// the variables of the same names move the finished tests elsewhere (tools/test-as-stranger).
#pragma once

#include <cstdlib>
#include <string>

namespace cufit::test {

inline std::string given_or(const char* variable, const char* built) {
  const char* given = std::getenv(variable);
  return given && *given ? given : built;
}

inline std::string source_dir() { return given_or("CUFIT_SOURCE_DIR", CUFIT_SOURCE_DIR); }
inline std::string binary_dir() { return given_or("CUFIT_BINARY_DIR", CUFIT_BINARY_DIR); }
inline std::string program() { return given_or("CUFIT_PROGRAM", CUFIT_PROGRAM); }

}  // namespace cufit::test
