// SPDX-License-Identifier: Apache-2.0
// cufit on a machine that a test has made: CUFIT_TEST_MACHINE names the folder that stands for it.
// Paths that are typed, and the variables, are those of this process.
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>

#include "commands/command.h"

int main(int argc, char** argv) {
  using namespace cufit;
  const host::RealHost here;
  const std::string folder = here.variable("CUFIT_TEST_MACHINE").value_or("");
  std::map<std::string, std::string> variables;
  for (auto& [name, value] : here.variables()) variables[name] = value;
  const host::RealHost made(folder, std::move(variables));
  const host::Host& machine = folder.empty() ? static_cast<const host::Host&>(here) : made;
  return commands::run({here, machine, knowledge::Knowledge::builtin(),
                        [] { return std::time(nullptr); }, commands::standard_streams()},
                       argc, argv);
}
