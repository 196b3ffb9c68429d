// SPDX-License-Identifier: Apache-2.0
// A machine that is none: what `cufit top --demo` shows, so that everybody can see it without a GPU. The same each time.
#pragma once

#include <vector>

#include "facts/gpu_sample.h"

namespace cufit::watch {

// Forty minutes of four GPUs, a sample each five seconds, the last one at `end` (seconds since the epoch): a training on two
// of them under Slurm, a process in a pod that leaks, a notebook that holds memory and computes nothing, a card that is too hot.
std::vector<facts::GpuSample> demo_samples(double end);

}  // namespace cufit::watch
