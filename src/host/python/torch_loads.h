// SPDX-License-Identifier: Apache-2.0
// Which CUDA libraries `import torch` (and the first convolution) would load in one environment,
// and which other copies the search passed over. Used by host/python/python_envs. It follows
// torch/__init__.py: libtorch_global_deps.so, then the preload step that this torch's own file
// describes, then torch/_C, then cuDNN's sublibraries, which cuDNN opens by bare soname when it is
// first used. Nothing is run.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"
#include "host/python/process_image.h"

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
  std::vector<facts::LoadedLibrary> loads;
  std::vector<facts::LoadedLibrary> shadowed;
};

TorchLoads find_torch_loads(const Host& host, const LibrarySearch& search,
                            const TorchProcess& process, const ElfReader& reader);

}  // namespace cufit::host
