// SPDX-License-Identifier: Apache-2.0
// The libraries of the CUDA stack by their file names.
#pragma once

#include <string>

namespace cufit::facts {

// A library of the CUDA stack by its name: libcudart, libcublas(Lt), libcudnn*, libnccl,
// libnvJitLink, ...
bool is_cuda_library(const std::string& name);
// "12" of "libcudart.so.12"; empty where the number of the file is not that of CUDA (cuSPARSE 12 is
// of CUDA 12 and 13).
std::string cuda_major_of_library(const std::string& name);

}  // namespace cufit::facts
