// SPDX-License-Identifier: Apache-2.0
// `cufit fit --plan`: which variants of a program are worth a trace, and what comes of them. A
// trace made for plans says as facts what the program does and could do: `framework` ("trainer",
// "lightning", "accelerate"), `autocast`, `precision` (of most parameters), `checkpointing` ("on",
// or how it is switched on: "transformers", "timm", "blocks", "" not at all) and
// `checkpointing_at`, `optimizer`, `optimizer_form`, `optimizer_can` ("fused 8bit"),
// `optimizer_at`, `forward_at`, `micro_batches`, `accumulated`, and `variant`: what was switched on
// for it ("bf16,fused").
#pragma once

#include <string>
#include <vector>

#include "commands/fit/fit_traces.h"
#include "fit/prediction.h"
#include "report/fit.h"

namespace cufit::commands {

inline constexpr const char* k_plan_variant = "plan";  // first in CUFIT_FIT_VARIANT

// Of the fact `variant`; empty: the program as it is.
std::vector<std::string> switches_of(const formats::TraceEvents& events);

// Up to six combinations of what the program does not do already, of which the traces `base` tell.
// `gpu`: the card that is pretended, "NVIDIA H200,9.0,150110011392".
std::vector<std::vector<std::string>> variants_worth(const std::vector<formats::TraceEvents>& base,
                                                     const std::string& gpu);

struct PlansAsked {
  uint64_t batch = 0;         // 0: not known
  bool extrapolates = false;  // other batch sizes than those traced can be answered
  fit::Setup setup;           // without a bound, of no card
};

// Warnings go to `traces`.
report::FitPlans fit_plans(FitTraces& traces, const PlansAsked& asked, const report::FitGpu& card,
                           const std::vector<report::FitGpu>& gpus);

}  // namespace cufit::commands
