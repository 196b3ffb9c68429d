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
// The same, but that CUFIT_TEST_MACHINE names the machine that it looks at (cufit_on_machine.cc).
inline std::string program_on_machine() {
  const std::string cufit = given_or("CUFIT_PROGRAM", CUFIT_PROGRAM);
  return cufit.substr(0, cufit.rfind('/')) + "/tests/on_machine/cufit";
}
inline std::string program() { return given_or("CUFIT_PROGRAM", CUFIT_PROGRAM); }

}  // namespace cufit::test
