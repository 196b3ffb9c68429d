// SPDX-License-Identifier: Apache-2.0
// Which CUDA libraries `import torch` (and the first convolution) would load in one environment,
// and which other copies the search passed over. Used by host/python_envs. It follows
// torch/__init__.py: libtorch_global_deps.so, then the preload step that this torch's own file
// describes, then torch/_C, then cuDNN's sublibraries, which cuDNN opens by bare soname when it is
// first used. Nothing is run.
#pragma once

#include <string>
#include <vector>

#include "host/facts.h"
#include "host/process_image.h"

namespace cufit::host {

struct TorchProcess {
  std::string interpreter;            // empty = unknown: its RPATH and libraries are left out
  std::string torch_folder;           // ".../site-packages/torch"
  std::vector<std::string> sys_path;  // in order; where the preload step looks
  std::string cuda;                   // "13.0" of torch/version.py; empty = none or unknown
  std::string python_tag;             // "cpython-312"; empty = unknown
};

struct TorchLoads {
  // package and inside are left to the caller, who knows the environment
  std::vector<LoadedLibrary> loads;
  std::vector<LoadedLibrary> shadowed;
};

TorchLoads find_torch_loads(const Host& host, const LibrarySearch& search,
                            const TorchProcess& process, const ElfReader& reader);

// A library of the CUDA stack by its name: libcudart, libcublas(Lt), libcudnn*, libnccl,
// libnvJitLink, ...
bool is_cuda_library(const std::string& name);
// "12" of "libcudart.so.12"; empty where the number of the file is not that of CUDA (cuSPARSE 12 is
// of CUDA 12 and 13).
std::string cuda_major_of_library(const std::string& name);

}  // namespace cufit::host
