// SPDX-License-Identifier: Apache-2.0
// What NVML says that this process holds of a device: true since driver 565, also in a container (research on
// open-gpu-kernel-modules pull request 614). NVML is loaded at the first context, which takes far longer.
#pragma once

#include "state.h"

namespace guard {

// False: this process is not listed, NVML is not there, or says no number (GB10, WSL).
bool nvml_own_bytes(State& all, Device ordinal, uint64_t* bytes);

// The domain's row of an NVML device; k_no_row.
int nvml_row(State& all, void* nvml_device);

}  // namespace guard
