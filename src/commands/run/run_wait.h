// SPDX-License-Identifier: Apache-2.0
// `cufit run --wait` and `--gpus`: waits until some of the GPUs that a program may use have room, and chooses them. Who may
// start is decided in resolve/quota/wait_queue.h; tickets and NVML are asked by host/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/context.h"
#include "host/process/signal_pause.h"
#include "host/quota/wait_tickets.h"

namespace cufit::commands {

struct WaitOptions {
  bool wait = false;  // false: room now, or none
  std::optional<std::string> vram, share, gpus, timeout;
  bool quiet = false;
  // The command that would wait, to be printed where there is no room now.
  std::string waiting_command;
  // Whether the program could start on this card; empty: on any.
  std::function<bool(const std::string& uuid)> suits;
};

// Where to start. While it lives, others keep off its cards, and signals that end a process wait.
struct Place {
  host::WaitQueue queue;
  std::unique_ptr<host::SignalPause> signals;
  std::string visible;  // for CUDA_VISIBLE_DEVICES
  std::string line;     // "starts on GPU 1", to be said when nothing is left that could refuse
};

struct Waited {
  std::optional<Place> place;
  int exit_code = 0;  // where there is none; the reason has been said
  bool unsuited =
      false;  // not yet: the program could start on none of the cards (WaitOptions::suits)
};

Waited wait_for_place(const Context& context, const WaitOptions& options);

// Before the program starts: its ticket names the quota's file (`domain`, empty: none) and, where this process becomes the
// program, stays with it. Ends the process where a signal came meanwhile.
void leave_to_program(Place& place, const std::string& domain, bool becomes_program);

// What the words of --gpus and --timeout lack, as a message; nullopt = nothing. Nothing of the machine is asked.
std::optional<Error> wait_words_problem(const Context& context, const WaitOptions& options);

}  // namespace cufit::commands
