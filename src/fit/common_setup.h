// SPDX-License-Identifier: Apache-2.0
// What programs do before their first step may depend on more than the batch size of the steps: a
// loop that encodes all texts in batches runs half as often at twice the batch size. Used by
// step_program.cc.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/model/trace_events.h"

namespace cufit::fit {

// How much of what is before the first step stays.
enum class KeptSetup : uint8_t {
  common,  // what the traces tell alike from their beginning on; behind it only what lives on
  living,  // only what is there when the first step begins
};

// Whether what lives when the first step begins is the same in all traces and was made in another
// order: threads that read weights (transformers) take turns as they like. `traces` by batch size.
bool made_in_other_order(std::span<const formats::TraceEvents* const> traces);

// By batch size: the traces with so much of what is before their first step, so that they can be laid over each
// other from there on. Nothing where one has no step.
std::optional<std::vector<formats::TraceEvents>> with_common_setup(
    std::span<const formats::TraceEvents* const> traces, KeptSetup kept);

}  // namespace cufit::fit
