// SPDX-License-Identifier: Apache-2.0
// `--gpu NAME|GIB|all` of `cufit fit`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/version.h"
#include "commands/command.h"
#include "knowledge/knowledge.h"
#include "report/fit.h"

namespace cufit::commands {

// The cards of --gpu in the order of the options, each once; `all` adds every card of the table
// that torch still has kernels for and that has memory of its own, the smallest first. Error{usage}
// for a name that the table does not know.
Result<std::vector<report::FitGpu>> fit_gpus(const Arguments& arguments,
                                             const knowledge::Knowledge& knowledge);

// The card that the program is traced for and whose libraries the figures without a bound count:
// the first of `gpus` that was asked for by name, else the one whose libraries take most.
report::FitGpu traced_card(const std::vector<report::FitGpu>& gpus,
                           const knowledge::Knowledge& knowledge);

// With what is this card's: its libraries, its size.
fit::Setup on_card(fit::Setup setup, const report::FitGpu& card);

// Has `answer` fill in one of each group of cards that are alike, side by side, and gives the
// others the same answers.
void answer_once(std::vector<report::FitGpu>& gpus,
                 const std::function<bool(const report::FitGpu&, const report::FitGpu&)>& alike,
                 const std::function<void(report::FitGpu&)>& answer);

// "NVIDIA H200,9.0,150110011392" for the tracer.
std::string pretended(const report::FitGpu& card, const knowledge::Knowledge& knowledge);

// What is asked of the model about this card, without a bound.
fit::Setup on_card(fit::Setup setup, const report::FitGpu& card);

// [[90, {..}], ..]: a GPU of the traced card's compute capability and of up to three others that
// were asked for, as cuDNN wants them described. Other cards of a capability get the same answers.
std::string cudnn_devices(const report::FitGpu& traced, const std::vector<report::FitGpu>& gpus,
                          const knowledge::Knowledge& knowledge);

}  // namespace cufit::commands
