// SPDX-License-Identifier: Apache-2.0
// The form of a check: a pure function from Input to findings, one file per question, one row in
// table.cc.
//
// A check judges alone and says what it saw. Which findings are roots and which only follow from
// another one is decided afterwards by root_cause.cc, so that one broken link gives one finding.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/version.h"
#include "checks/finding.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

// One GPU as all sources together show it: CUDA, NVML, PCI, the GPU table, or --gpu. Pointers point
// into Facts.
struct GpuView {
  uint32_t index = 0;
  std::string label;  // "0: NVIDIA H200 (9.0)"
  std::string name;   // NVML's or CUDA's name, else the table's by PCI id, else "10de:2204"
  std::optional<ComputeCapability> cc;
  Source cc_source;  // the call that said so, or data/gpus.toml with the PCI id or name
  const facts::NvmlGpu* nvml = nullptr;
  const facts::CudaDevice* cuda = nullptr;
  const facts::PciGpu* pci = nullptr;
  const knowledge::Gpu* row = nullptr;  // of the GPU table, by name or PCI id
};

struct Input {
  const facts::Facts& facts;
  const knowledge::Knowledge& knowledge;
  std::vector<GpuView> gpus;
  std::optional<Version> driver;  // of the kernel module, else what NVML says
  Source driver_source;
  // CUDA version of the user-mode driver: its own answer, else by branch
  std::optional<Version> driver_cuda;
  Source driver_cuda_source;
  bool what_if = false;  // --gpu or --driver: the facts do not describe the machine as it is
};

Input make_input(const facts::Facts& facts,
                 const knowledge::Knowledge& knowledge);  // merged_facts.cc

using Check = std::vector<Finding> (*)(const Input& input);
struct CheckRow {
  const char* name;  // "driver_floor"
  Check run;
  bool asks_machine =
      false;  // about the live kernel, nodes, container, processes: not asked with --gpu/--driver
};
std::span<const CheckRow> check_table();  // table.cc

// Keeps roots, moves what follows from them into their `consequences`, orders by severity.
// root_cause.cc
std::vector<Finding> keep_root_causes(std::vector<Finding> findings);

}  // namespace cufit::checks
