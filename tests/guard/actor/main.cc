// SPDX-License-Identifier: Apache-2.0
// A program that does with the driver what a script says: guard_actor ROUTE SCRIPT, where SCRIPT is the text itself
// or `-` for standard input.
#include <iostream>
#include <sstream>

#include "commands.h"

int main(int count, char** arguments) {
  if (count != 3) return 9;
  actor::Calls calls = actor::find_calls(arguments[1]);
  std::istringstream script(arguments[2]);
  bool from_input = std::string(arguments[2]) == "-";
  return actor::run(calls, from_input ? std::cin : script) == 9 ? 9 : 0;
}
