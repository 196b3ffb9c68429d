// SPDX-License-Identifier: Apache-2.0
// The facts of a machine, this one's or a recording's, as the question what could hold a limit of GPU memory there. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "facts/facts.h"
#include "knowledge/knowledge.h"
#include "resolve/quota/backend.h"
#include "resolve/quota/vram_size.h"

namespace cufit::resolve {

// No program is meant. What facts do not hold stays as it is by default: `mps_running`, `mps_program`, `guard_off`.
// `controllers`: the words of cgroup.controllers; nullopt: not read (a recording), then `accounting` is what the driver
// chooses by itself on such a kernel.
QuotaMachine quota_machine(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                           std::optional<std::string_view> controllers = std::nullopt);

// The GPUs as a process numbers them, with what a context takes there.
std::vector<QuotaCard> quota_cards(const facts::Facts& facts,
                                   const knowledge::Knowledge& knowledge);

}  // namespace cufit::resolve
