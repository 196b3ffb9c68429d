// SPDX-License-Identifier: Apache-2.0
// What cuDNN's engines ask for that it does not offer where no GPU is, but which PyTorch tries with
// torch.backends.cudnn.benchmark. Used by workspaces.cc.
#pragma once

#include <cstdint>
#include <span>

#include "fit/cudnn_answers.h"
#include "fit/step_program.h"

namespace cufit::fit {

// The numbers of a call of `conv`, `conv_dgrad` or `conv_wgrad`, and which. {0, 0}: no such engine
// takes it.
SizeAt tried_workspace(std::span<const uint64_t> numbers, ConvPass pass);

}  // namespace cufit::fit
