// SPDX-License-Identifier: Apache-2.0
// `cufit run --vram`: a limit of GPU memory for a program and all that it starts. What the sizes mean and what holds them is
// decided in resolve/quota; files and the machine are asked by host/quota.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/version.h"
#include "commands/context.h"
#include "host/quota/domain_file.h"
#include "host/quota/mps_server.h"
#include "resolve/quota/vram_size.h"

namespace cufit::commands {

// --by: what has to hold the limit. Without it: whatever the machine has.
enum class VramHolder { guard, mps, torch };
const char* to_string(VramHolder holder);  // as --by says it

struct VramOptions {
  std::string vram;                  // as written
  std::optional<std::string> share;  // name of a domain for several launches
  std::optional<VramHolder> by;
  std::optional<std::string> spill;  // --spill, as written
  bool quiet = false;                // warnings are said all the same
};

// The program that will start.
struct VramProgram {
  std::string path;
  std::vector<std::string> command;
  std::optional<Version> torch;  // of a lock; nullopt = looked for beside the program
};

// What was made for a launch.
struct VramLimit {
  std::string ring_folder;  // where its processes record what they ask for; empty = none
  host::DomainFile domain;  // no path = none
  host::OwnMps mps;         // has to be ended after the program
  std::string mps_program;  // by which
};

// Says what holds the limit, makes its files, and changes `variables` ("NAME=value") for the program.
// Errors: a size that is none or fits no card, a place that cannot be used, a holder that cannot be had. Nothing is left then.
Result<VramLimit> limit_vram(const Context& context, const VramOptions& options,
                             const VramProgram& program, std::vector<std::string>& variables);

// All of it that does not depend on the GPU: the words, the holder, the folders and the guard. Before a wait of hours; makes
// no domain.
Result<void> check_vram(const Context& context, const VramOptions& options,
                        const VramProgram& program, const std::vector<std::string>& variables);

// After the program, or where it could not be started: what nobody else uses goes. What its processes recorded stays.
void end_limit(VramLimit& limit);
// What is wrong with the words of --vram and --share; nothing of the machine is asked. `out`: what --vram says.
std::optional<Error> vram_words_problem(const Context& context, const std::string& vram,
                                        const std::optional<std::string>& share,
                                        resolve::VramRequest& out);

}  // namespace cufit::commands
