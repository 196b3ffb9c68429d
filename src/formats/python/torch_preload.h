// SPDX-License-Identifier: Apache-2.0
// Which CUDA libraries `import torch` opens by itself, read from the text of torch/__init__.py: the
// list changes with almost every release, and the file at hand is the only exact source. Used by
// host/python/torch_loads.
//
// Eras: <= 1.12 nothing. 1.13 .. 2.8: on success (and only if a marker such as
// "nvidia/cuda_runtime/lib/libcudart.so" is in /proc/self/maps) one or two calls
// `_preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")`; on OSError a dict
// `"cublas": "libcublas.so.*[0-9]"` in order. Later: one list of tuples for both cases, optional
// ones by
// `_preload_cuda_lib("nvtx", "...", required=False)`. Observed in torch 1.13, 2.7.1 and 2.11.0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

struct PreloadStep {
  std::string folder;    // "cublas"
  std::string pattern;   // "libcublasLt.so.*[0-9]", a glob
  bool required = true;  // when it is not found, what follows is not opened either
};

struct TorchPreload {
  std::vector<PreloadStep> after_success;
  std::string maps_marker;  // after_success only when a loaded path holds this text; empty = always
  std::vector<PreloadStep> after_failure;
  bool looks_in_cuda_major_folder = false;  // nvidia/cu13/lib as well
};

TorchPreload parse_torch_preload(std::string_view init_py);

// fnmatch for the patterns above: "*" and "[0-9]".
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace cufit::formats
