// SPDX-License-Identifier: Apache-2.0
// What `cufit run --spill` asks for, and what the link to the GPU carries. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "resolve/quota/vram_size.h"

namespace cufit::resolve {

struct SpillRequest {
  bool optimizer = false;        // the state of torch's optimizers, where the run would not fit
  bool always = false;           // all of that state
  uint64_t emergency_bytes = 0;  // of each process, at a second refusal
};

// "optimizer", "always", "8G", or two of them: "optimizer,8G". Problem: spill_size.
std::optional<VramProblem> parse_spill(std::string_view text, SpillRequest& out);

// The option of a command "python -I train.py" by which Python reads no PYTHONPATH or no sitecustomize: the script of
// `--spill optimizer` does not come into it. Empty: none, or no Python.
std::string shutting_out_option(const std::vector<std::string>& command);

// Bytes a second that a GPU reads over its PCIe link at its fastest; 0 = not known.
uint64_t link_rate(const facts::PciGpu& gpu);

// Of those at these PCI addresses the slowest: which one will touch what, nobody knows before the start.
uint64_t slowest_link(const facts::Facts& facts, const std::vector<QuotaCard>& cards);

}  // namespace cufit::resolve
