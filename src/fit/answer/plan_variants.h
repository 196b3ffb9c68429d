// SPDX-License-Identifier: Apache-2.0
// Which variants of a program are worth a trace. A trace made for plans says as facts what the
// program does and could do: `framework` ("trainer", "lightning", "accelerate"), `autocast`,
// `precision` (of most parameters), `checkpointing` ("on", or how it is switched on:
// "transformers", "timm", "blocks", "" not at all) and `checkpointing_at`, `optimizer`,
// `optimizer_form`, `optimizer_can` ("fused 8bit"), `optimizer_at`, `forward_at`, `micro_batches`,
// `accumulated`, and `variant`: what was switched on for it ("bf16,fused"). Of several ranks
// `data_parallel` ("ddp") and `data_parallel_at`, `weights_bytes`, `trained_bytes`, and of a model
// without a script `tp_can`: numbers of ranks that can share its layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "formats/model/trace_events.h"

namespace cufit::fit {

inline constexpr const char* k_plan_variant = "plan";  // the tracer is asked for a trace for plans

// Of the fact `variant`; empty: the program as it is.
std::vector<std::string> switches_of(const formats::TraceEvents& events);

// The words of a variant as the tracer is told them: its switches, and in which type FSDP gathers
// where `trace`, of the program as it is, computes in half precision already.
std::string variant_words(const std::vector<std::string>& switches,
                          const formats::TraceEvents& trace);

// Up to six combinations of what the program does not do already, of which `trace` tells. With
// DistributedDataParallel up to nine more, in which something else deals the model out.
// `traced_for`: the card that is pretended.
std::vector<std::vector<std::string>> variants_worth(
    const formats::TraceEvents& trace, const std::optional<ComputeCapability>& traced_for);

}  // namespace cufit::fit
