// SPDX-License-Identifier: Apache-2.0
// Reads torch's own statements that carry numbers, in all wordings since 0.3: its warnings about a
// driver or a GPU, and what an interactive session answers.
//
//   The NVIDIA driver on your system is too old (found version 12080).
//   Found GPU0 GeForce GTX 660 Ti which is of cuda capability 3.0.
//   The minimum cuda capability supported by this library is 7.5.
//   NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not compatible with the current PyTorch
//   installation.
//   The current PyTorch install supports CUDA capabilities sm_50 sm_60 ... compute_90.
//   >>> torch.cuda.get_arch_list()     and the answer on the next line
//   The detected CUDA version (11.8) mismatches the version that was used to compile PyTorch (12.1)
//   PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.0.1+cu118)              (xFormers)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

struct TorchValue {
  std::string value;
  uint64_t line = 0;
};

struct TorchDevice {
  std::optional<uint32_t> index;
  std::string name;        // empty = the answer of get_device_capability()
  std::string capability;  // "6.1"; empty = the answer of get_device_name()
  uint64_t line = 0;
};

struct TorchArchs {
  std::vector<std::string> sm, ptx;  // "86", "90a"; from sm_86 and compute_90
  uint64_t line = 0;
};

struct TorchMessages {
  std::vector<TorchValue> driver_cuda;         // "12.8", decoded from 12080
  std::vector<TorchDevice> devices;            // one for each statement
  std::vector<TorchArchs> archs;               // device code of the torch that speaks
  std::vector<TorchValue> minimum_capability;  // "7.5"
  std::vector<TorchValue> torch_version;       // "2.0.1+cu118": what xFormers found
  std::vector<TorchValue> torch_cuda;          // "12.1": torch.version.cuda; "None" = built without
  std::vector<TorchValue> toolkit_cuda;    // "11.8": the toolkit that an extension's build found
  std::vector<TorchValue> cuda_available;  // "True", "False"
  std::vector<TorchValue> device_count;    // "2"
  std::vector<TorchValue> without_cuda;    // "Torch not compiled with CUDA enabled"
};

TorchMessages parse_torch_messages(std::span<const TextLine> lines);

}  // namespace cufit::formats
