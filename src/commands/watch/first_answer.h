// SPDX-License-Identifier: Apache-2.0
// The wait for the driver's first answer, with what is to be said meanwhile: nobody should look at a silent terminal.
#pragma once

#include "commands/context.h"
#include "commands/watch/live_samples.h"

namespace cufit::commands {

class FirstAnswer {
 public:
  FirstAnswer(const Context& context, const LiveSamples& live);

  // Says on stderr, each once, that the driver does not answer and until when it is waited for, and that what asks it has
  // ended. True while it is waited for: call it at least twice a second.
  bool is_awaited();

 private:
  void say(const char* key, const std::string& end);

  const Context& context_;
  const LiveSamples& live_;
  const double begun_;
  bool said_late_ = false, said_end_ = false;
};

}  // namespace cufit::commands
