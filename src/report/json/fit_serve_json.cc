// SPDX-License-Identifier: Apache-2.0
// Schema cufit.fit.serve/1. Members may be added within the schema's version, none is renamed or
// removed.
#include <algorithm>

#include "report/fit_serve.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

Json serve_card_json(const fit::ServeCard& card) {
  Json out;
  out["name"] = card.name;
  out["fits"] = card.fits;
  out["max_context"] = card.max_context;
  out["max_concurrency"] = card.max_sequences;
  out["flags"] = Json::array();
  for (const std::string& word : card.flags) out["flags"].push_back(word);
  out["flags_context"] = card.flags.empty() ? Json(nullptr) : Json(card.started_context);
  out["flags_concurrency"] = card.flags.empty() ? Json(nullptr) : Json(card.started_sequences);
  out["gpu_layers"] = card.gpu_layers == 0 ? Json(nullptr) : Json(card.gpu_layers);
  out["refused"] = card.refused ? Json(card.refused->id) : Json(nullptr);
  out["engine_message"] = or_null(card.message);
  out["total_bytes"] = card.total;
  out["budget_bytes"] = card.budget;
  out["activation_bytes"] = card.step.activation.usual;
  out["activation_upper_bytes"] = card.step.activation.upper;
  out["other_bytes"] = card.step.other.usual;
  out["other_upper_bytes"] = card.step.other.upper;
  out["cache_available_bytes"] = card.cache_available;
  out["cache_needed_bytes"] = card.cache_needed;
  out["max_context_fp8_cache"] = card.fp8_context == 0 ? Json(nullptr) : Json(card.fp8_context);
  out["capacity_measured"] = card.measured;
  out["compute_capability"] = or_null(card.cc);
  return out;
}

}  // namespace

std::string fit_serve_json(const FitServeView& view) {
  const fit::ServeAnswer& answer = view.answer;
  Json out;
  out["schema"] = "cufit.fit.serve/1";
  out["cufit"] = CUFIT_VERSION;
  out["model"] = view.model;
  out["served"] = answer.served;
  out["engine"] = std::string(fit::engine_name(answer.engine));
  out["tp"] = answer.tp;
  out["context"] = answer.context;
  out["concurrency"] = answer.sequences;
  out["kv_cache_dtype"] = answer.type.name;
  out["weights_bytes"] = answer.weights.bytes;
  out["weights_bytes_per_gpu"] = answer.weights.gpu_bytes;
  out["weights_reckoned"] = answer.weights.reckoned;
  out["weights_by_type"] = Json::object();
  for (const auto& [type, bytes] : answer.weights.types) out["weights_by_type"][type] = bytes;
  out["kv_bytes_per_token"] = answer.token_bytes;
  out["kv_bytes_per_far_token"] = answer.far_token_bytes;
  out["state_bytes_per_sequence"] = answer.state_bytes;
  // Of the cards, the one that takes most: they differ by what a card makes usual.
  const bool none = answer.cards.empty();
  uint64_t activation = none ? answer.step.activation.usual : 0;
  uint64_t other = none ? answer.step.other.usual : 0;
  for (const fit::ServeCard& card : answer.cards) {
    activation = std::max(activation, card.step.activation.usual);
    other = std::max(other, card.step.other.usual);
  }
  out["activation_bytes"] = activation;
  out["other_bytes"] = other;
  out["gpus"] = Json::array();
  for (const fit::ServeCard& card : answer.cards) out["gpus"].push_back(serve_card_json(card));
  out["warnings"] = Json::array();
  for (const auto& warning : answer.warnings)
    out["warnings"].push_back(
        {{"id", warning.first}, {"text", fit_serve_warning(warning, view.knowledge, "en")}});
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
