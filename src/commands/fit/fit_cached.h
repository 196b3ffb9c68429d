// SPDX-License-Identifier: Apache-2.0
// `cufit fit --cached`: the answer of an earlier `cufit fit` of this very command, at once.
//
// A kept answer is of: the same words in the same folder, the same options that change the answer,
// the same cufit with the same tables; and the program's files are what they were before it was
// traced (program_files.h). What was traced for the card that is asked for comes before what was
// traced for another.
#pragma once

#include <string>
#include <vector>

#include "commands/fit/fit.h"
#include "commands/fit/program_files.h"
#include "fit/answer/answer.h"

namespace cufit::commands {

// Keeps it where it is the answer of a program. Says nothing where that fails.
void keep_answer(const Context& context, const FitRequest& request, const std::string& program,
                 const fit::Answer& answer, const std::vector<fit::Card>& cards,
                 const FileMarks& files);

// Exit::k_findings where a card that was asked for is too small, Exit::k_not_cached where no answer
// is kept, or the program's files changed since.
int print_cached(const Context& context, const FitRequest& request,
                 const std::vector<fit::Card>& cards);

}  // namespace cufit::commands
