// SPDX-License-Identifier: Apache-2.0
// Reads what nvidia-smi prints, as people paste it: the table of every version since 2016 (375 to
// 590), `-L`, parts of `-q`, and `--query-gpu=... --format=csv`. Tables are often shortened
// ("..."), lack their frame or stand beside prose; each line is read for itself as far as it tells.
//
//   | NVIDIA-SMI 535.54.03    Driver Version: 535.54.03    CUDA Version: 12.2     |
//   |   0  NVIDIA GeForce ...  Off  | 00000000:01:00.0 Off |                  N/A |   name, bus
//   | 30%   37C    P8    16W / 450W |     10MiB / 24564MiB |      0%      Default |   memory, mode
//   |                               |                      |             Disabled |   MIG, since
//   450 |    0   N/A  N/A      1234      C   python                            500MiB |   process
//
// One text may hold several runs (host and container, before and after): they are kept apart.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

struct SmiMig {
  std::string profile;  // "1g.5gb" of -L; empty in the table, which has only numbers
  std::optional<uint64_t> used_mib, total_mib;
  uint64_t line = 0;
};

struct SmiGpu {
  std::optional<uint32_t> index;
  std::string name;       // as printed; empty = the text does not show it
  bool name_cut = false;  // "NVIDIA GeForce ...": the table had no room for it (the dots are kept)
  std::string bus;        // "00000000:01:00.0"
  std::optional<uint64_t> used_mib, total_mib, free_mib;
  std::string compute_mode;        // "Default", "E. Process", "E. Thread", "Prohibited"
  std::string compute_capability;  // "8.9"; only a query tells it
  std::optional<bool> mig;
  std::vector<SmiMig> mig_devices;
  uint64_t line = 0;
};

struct SmiProcess {
  std::optional<uint32_t> gpu;
  uint32_t pid = 0;
  std::string type;  // "C", "G", "C+G", "M+C"
  std::string name;
  std::optional<uint64_t> used_mib;  // Windows and some containers do not tell
  uint64_t line = 0;
};

struct SmiRun {
  std::string driver;  // "535.54.03"
  std::string cuda;    // "12.2"; "N/A" is kept: no libcuda was found
  uint64_t driver_line = 0, cuda_line = 0;
  bool windows = false;  // a GPU row says WDDM, TCC or MCDM
  std::vector<SmiGpu> gpus;
  std::vector<SmiProcess> processes;
  uint64_t line = 0;  // its first
};

struct NvidiaSmi {
  std::vector<SmiRun> runs;  // in the order of the text
};

NvidiaSmi parse_nvidia_smi(std::span<const TextLine> lines);

// A row of the table that names its columns ("| GPU  Name ... Volatile Uncorr. ECC |"): the same on
// every machine, so that its words say nothing of this one.
bool is_smi_heading(std::string_view line);

}  // namespace cufit::formats
