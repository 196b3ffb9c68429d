// SPDX-License-Identifier: Apache-2.0
// What a command works with, made once by dispatch.cc: machines, knowledge, clock, output.
#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <string>

#include "commands/output.h"
#include "host/files/host.h"
#include "knowledge/knowledge.h"

namespace cufit::commands {

// What a process finds around it: this machine, or what a test puts in its place.
struct Surroundings {
  const host::Host& files;  // where a path that was typed lies, and the variables
  const host::Host&
      machine;  // whose GPUs, driver and environments are looked at; the same but in tests
  const knowledge::Knowledge& knowledge;
  std::function<std::time_t()> now;
  Streams streams;
  std::string note = {};  // for stderr before the command's own words
};

struct Context {
  const host::Host& files;
  const host::Host& machine;
  const knowledge::Knowledge& knowledge;
  std::function<std::time_t()> now;  // seconds since 1970, UTC
  const Output& output;

  const std::string& language() const { return output.language(); }
  // Of data/messages in the user's language, with its arguments filled in.
  std::string message(std::string_view key,
                      const std::map<std::string, std::string>& args = {}) const;
};

}  // namespace cufit::commands
