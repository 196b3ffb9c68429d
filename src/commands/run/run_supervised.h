// SPDX-License-Identifier: Apache-2.0
// `cufit run --supervise`: stays the parent of the program, and explains its death.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "host/files/host.h"
#include "host/process/supervise.h"

namespace cufit::commands {

struct SupervisedRequest {
  host::SuperviseOptions start;
  std::string class_name, torch, env;
  bool is_cpu = false;                  // the class is made for no GPU
  std::vector<std::string> must_haves;  // modules that the lock asks for
  std::string remake;                   // command that makes the environment anew
  bool limited = false;                 // by --vram
  std::string ring_folder;              // of --vram: what its processes recorded; empty = none
  std::function<void()> ended;          // called as soon as the program is over, or was not started
};

// The program's exit code; where it could not be started, the one of a shell.
// `report`: the name of the report of a death, of --report; empty: one of cufit's own.
int run_supervised(const Context& context, const SupervisedRequest& launch,
                   const std::string& report);

// Before a wait: a report that cannot be written would go elsewhere after it. Error{io} names the file.
Result<void> check_report(const std::string& asked);

// The same without a word on its death: for a launch that has something to put away after it.
int run_attended(const Context& context, const SupervisedRequest& launch);

// Says why a program was not started; the exit code of a shell for it.
int not_started(const Context& context, const facts::StartFailure& failure);

}  // namespace cufit::commands
