// SPDX-License-Identifier: Apache-2.0
// Work on one CUDA device inside the driver child: the compute check (context, allocation, kernel,
// verified result) and, with --deep, the memory pattern test. Called by cuda_query.cc; fills the
// device's facts and frees everything.
#pragma once

#include "host/driver/driver_calls.h"
#include "host/driver/cuda_api.h"
#include "facts/facts.h"

namespace cufit::host {

// Leaves compute_check "ok" or the step that failed, and its CUresult in compute_code. With `deep`,
// runs the memory test in the same context when the check passed.
void check_compute(DriverCalls& calls, cuda::Device device, bool deep, facts::CudaDevice& facts);

// Needs the device's context to be current.
void test_memory(DriverCalls& calls, facts::CudaDevice& facts);  // gpu_memory_check.cc

}  // namespace cufit::host
