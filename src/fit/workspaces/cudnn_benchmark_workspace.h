// SPDX-License-Identifier: Apache-2.0
// What an engine of cuDNN asks for that it does not offer where no GPU is: PyTorch tries it with
// torch.backends.cudnn.benchmark, and kernels as large as pictures have no other. Used by
// workspaces.cc.
#pragma once

#include <cstdint>
#include <span>

#include "fit/workspaces/cudnn_answers.h"
#include "fit/step_program.h"

namespace cufit::fit {

// The numbers of a call of `conv`, `conv_dgrad` or `conv_wgrad`, and which. {0, 0}: no such engine
// takes it.
SizeAt tried_workspace(std::span<const uint64_t> numbers, ConvPass pass);

// Whether it runs the gradient of weights of thousands of pictures without a trial, in place of the
// engine that cuDNN names where no GPU is.
bool takes_over(std::span<const uint64_t> numbers, ConvPass pass, const CudnnAnswer& answer);

// Whether it is the only one, and chosen without a trial. Second derivatives of convolutions are
// convolutions with such kernels.
bool has_no_other_engine(std::span<const uint64_t> numbers);

}  // namespace cufit::fit
