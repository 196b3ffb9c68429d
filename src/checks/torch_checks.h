// SPDX-License-Identifier: Apache-2.0
// The checks between driver and torch: driver against runtime, device code against GPU, extensions,
// and what the driver answered. One file each, named like the function; table.cc runs them. Each is
// pure.
#pragma once

#include <vector>

#include "checks/check.h"

namespace cufit::checks {

std::vector<Finding> check_build_tools(const Input& input);     // build_tools.cc
std::vector<Finding> check_compat(const Input& input);          // compat.cc
std::vector<Finding> check_compute(const Input& input);         // compute.cc
std::vector<Finding> check_driver_answers(const Input& input);  // driver_answers.cc
std::vector<Finding> check_driver_floor(const Input& input);    // driver_floor.cc
std::vector<Finding> check_driver_window(const Input& input);   // driver_window.cc
std::vector<Finding> check_extensions(const Input& input);      // extensions.cc
std::vector<Finding> check_gpu_code(const Input& input);        // gpu_code.cc
std::vector<Finding> check_mixed_gpus(const Input& input);      // mixed_gpus.cc
std::vector<Finding> check_torch_build(const Input& input);     // torch_build.cc

}  // namespace cufit::checks
