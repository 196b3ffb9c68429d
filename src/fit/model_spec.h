// SPDX-License-Identifier: Apache-2.0
// How a model is trained where there is no script yet: what users of its library do, written down
// as the JSON that the program of python/cufit_model reads, with every assumption by its id
// ("report.fit.warning.model_<id>").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fit/model_kind.h"
#include "fit/strategy.h"

namespace cufit::fit {

// What was asked for; empty or 0: what is usual.
struct Training {
  std::string method;  // "full", "lora", "qlora"
  uint64_t rank = 0;   // of lora and qlora
  uint64_t sequence = 0, resolution = 0;
  std::string dtype;          // "bf16", "fp16", "fp32"
  std::string optimizer;      // "adamw", "adamw8bit", "sgd"
  std::string checkpointing;  // "on", "off"
  std::string lora_targets;   // names with commas, "all", "default"
  bool bfloat = true;         // the card computes in bf16
  std::optional<Strategy> strategy;  // over several GPUs; nullopt: on one
};

// "full", "lora:64", "qlora", "qlora:32" into method and rank. Error{usage} for others.
Result<Training> parse_training(const std::string& text);

using Assumption = std::pair<std::string, std::string>;  // id, detail

struct ModelSpec {
  std::string json;
  std::vector<Assumption> assumed;  // also in the JSON: an event file keeps them
};

// What the files say of themselves.
struct ModelWeights {
  bool there = true;
  uint64_t missing_bytes = 0;  // where a file was cut off
};

// `config`: path of the config.json that the program reads; empty where `kind.layout` says it all.
// Error{usage} where something is missing (--seq, --res) or does not fit the model,
// Error{unsupported} for a model that cannot be trained so.
Result<ModelSpec> model_spec(const ModelKind& kind, const std::string& config, Training training,
                             const ModelWeights& weights = {});

// Kinds of notes in an event file about such a model, and those that say why it could not be built
// ("report.fit.stop.<kind>").
bool is_model_note(std::string_view kind);
bool is_model_stop(std::string_view kind);

}  // namespace cufit::fit
