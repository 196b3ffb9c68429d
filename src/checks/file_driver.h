// SPDX-License-Identifier: Apache-2.0
// Which driver a file needs before its device code matters: one that drives the GPU, and one that
// runs the CUDA major of the runtime libraries that the file links. `inspect` asks for files that
// belong to no environment; within one, driver_window.cc and driver_floor.cc decide.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

// The CUDA major of the runtime that is linked: 13 for libcudart.so.13, libcublas.so.13,
// libnvrtc.so.13. nullopt: none of them is.
std::optional<uint32_t> linked_cuda(const std::vector<std::string>& needed);

struct FileDriver {
  enum class Fit {
    ok,
    unknown,       // which driver is not known; `branch` says which one it takes
    gpu_older,     // the GPU came with a newer branch
    gpu_dropped,   // `last` is the last branch that drives the GPU
    cuda_too_new,  // the runtime needs a newer one
    never,         // no driver both drives the GPU and runs that CUDA
  };
  Fit fit = Fit::ok;
  uint32_t branch = 0;  // the oldest branch that drives the GPU and runs that CUDA; 0 = any
  uint32_t last = 0;    // the GPU's last branch; 0 = all newer ones drive it
  uint32_t cuda = 0;    // linked major; 0 = none
};
FileDriver file_driver(const std::vector<std::string>& needed, ComputeCapability device,
                       const std::optional<Version>& driver, const knowledge::Knowledge& knowledge);

}  // namespace cufit::checks
