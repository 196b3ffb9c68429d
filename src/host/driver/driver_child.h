// SPDX-License-Identifier: Apache-2.0
// NVML and the CUDA driver are asked in two children of this process, in parallel: a wedged driver
// hangs in an ioctl or kills the process that calls it, and neither may happen to cufit.
// read_driver_answers (probe.h) starts both, gathers what they say until the time limit, and turns
// a hang or a crash into the reason of the facts that are missing. The two functions below are the
// children's work; only tests call them otherwise.
#pragma once

#include <string>

#include "host/driver/driver_calls.h"
#include "facts/facts.h"
#include "host/probe.h"

namespace cufit::host {

struct ChildTask {
  std::string library_dir;  // empty = the loader's search
  bool deep = false;
  DriverDepth depth = DriverDepth::compute;
  double limit_seconds = 10;  // the parent's limit; work that cannot end before it is not begun
};

void ask_nvml(DriverCalls& calls, const ChildTask& task);  // nvml_query.cc
void ask_cuda(DriverCalls& calls, const ChildTask& task);  // cuda_query.cc

}  // namespace cufit::host
