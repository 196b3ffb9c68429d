// SPDX-License-Identifier: Apache-2.0
// `cufit fit --cached`: the answer of an earlier `cufit fit` of this very command, at once.
//
// A kept answer is of: the same words in the same folder, the same options that change the answer,
// the same cufit with the same tables; and the program's files are what they were: those that the
// trace named, the Python files beside the script, and files among the words.
#pragma once

#include <string>
#include <vector>

#include "commands/fit/fit.h"
#include "fit/answer/answer.h"

namespace cufit::commands {

// Files of the program that decide the answer, relative to the working folder.
std::vector<std::string> program_files(const host::Host& machine,
                                       const std::vector<std::string>& command,
                                       const fit::Traces& traces);

// Keeps it where it is the answer of a program. Says nothing where that fails.
void keep_answer(const Context& context, const FitRequest& request, const std::string& program,
                 const fit::Answer& answer, const std::vector<std::string>& files);

// Exit::k_findings where a card that was asked for is too small, Exit::k_not_cached where no answer
// is kept, or the program's files changed since.
int print_cached(const Context& context, const FitRequest& request,
                 const std::vector<fit::Card>& cards);

}  // namespace cufit::commands
