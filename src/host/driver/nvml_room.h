// SPDX-License-Identifier: Apache-2.0
// What is free on each GPU and MIG instance and who uses it: the few questions of NVML that `cufit run --wait` asks again
// and again, in a child as every call of the driver. probe.h asks everything, once.
#pragma once

#include "base/result.h"
#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

// Each MIG instance is an entry of its own, with its GPU's index and its memory and processes; its GPU is none then.
// Filled: identity, memory, processes, compute mode, display, state_code.
// Error{timeout}, Error{io}: NVML's child did not end or crashed. Error{unsupported}: no NVML, or it does not start.
Result<facts::NvmlFacts> read_gpu_room(const Host& host, const std::string& library_dir = {});

}  // namespace cufit::host
