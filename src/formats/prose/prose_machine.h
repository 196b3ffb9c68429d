// SPDX-License-Identifier: Apache-2.0
// Reads what prose and tools say of a machine: "Ubuntu 22.04, Python 3.10, 2x RTX 3090, driver
// 525", `uname -a`, `nvcc --version`, image names. A mention is what the text says in one place;
// which of several is true, and whether a board of that name exists, the caller decides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

enum class MachineWord {
  python,        // "3.10.15"; of a path ("lib/python3.10/site-packages") weak
  system,        // "Ubuntu 22.04.5", "Windows 11"; without a number weak
  kernel,        // "5.15.0-91-generic"
  glibc,         // "2.31"
  gpu,           // "RTX 3090", with count and memory_gb
  driver,        // "535.183.01"; a branch alone ("525") weak
  driver_cuda,   // CUDA version that nvidia-smi is said to show: "12.8"
  toolkit,       // of nvcc: "11.8.89"; of a path ("/usr/local/cuda-12.1") weak
  cuda,          // "CUDA 12.1" without saying whose
  gcc,           // "9.4.0"
  image,         // "nvidia/cuda:11.8.0-devel-ubuntu22.04"
  wsl,           // "1", "2"; "WSL" alone: empty and weak
  architecture,  // "x86_64", "aarch64"; inside a file name weak
  jetson,        // "L4T R35.4.1", "JetPack 5.1.2"
  container,     // "docker", "kubernetes", "lxc", "apptainer"
  secure_boot,   // "enabled", "disabled"
};

struct MachineMention {
  MachineWord what = MachineWord::python;
  std::string value;
  uint32_t count = 0;      // gpu only; 0 = not said
  uint32_t memory_gb = 0;  // gpu only; 0 = not said
  bool weak = false;       // read from something that says it in passing; see above
  uint64_t line = 0;
};

struct MachineWords {
  std::vector<MachineMention> mentions;  // in the order of the text; equal ones once; at most 600
};

MachineWords parse_machine_words(std::span<const TextLine> lines);

}  // namespace cufit::formats
