// SPDX-License-Identifier: Apache-2.0
#include "fit/strategy.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::fit {
namespace {

// Of a group, more than the largest domain of NVLink has GPUs.
constexpr uint64_t k_most_degree = 1024;

struct StrategyName {
  std::string_view name, kind;
  bool reshard;
};
// ZeRO-2 keeps whole weights from the forward pass to the step, ZeRO-3 does not: FSDP2 without and
// with resharding.
constexpr StrategyName k_strategies[] = {
    {"ddp", "ddp", true},    {"zero1", "zero1", true},           {"zero2", "fsdp", false},
    {"zero3", "fsdp", true}, {"fsdp:no-reshard", "fsdp", false}, {"fsdp", "fsdp", true}};

}  // namespace

std::string Strategy::note() const {
  std::string name = asked.substr(0, asked.find(':'));
  if (asked == "fsdp:no-reshard") name += "_kept";
  return "strategy_" + name;
}

Result<Strategy> parse_strategy(const std::string& text) {
  const auto named = std::find_if(std::begin(k_strategies), std::end(k_strategies),
                                  [&](const StrategyName& one) { return one.name == text; });
  if (named != std::end(k_strategies))
    return Strategy{text, std::string(named->kind), 0, named->reshard};
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const uint64_t degree =
      colon == std::string::npos ? 0 : parse_uint(text.substr(colon + 1)).value_or(0);
  if ((kind == "hsdp" || kind == "tp") && degree > 1 && degree <= k_most_degree)
    return Strategy{text, kind, degree, true};
  return fail(Code::usage,
              format("`--strategy {}`: ddp, zero1, zero2, zero3, fsdp, fsdp:no-reshard, hsdp:K or "
                     "tp:K, with groups of 2 to {} GPUs",
                     text, k_most_degree));
}

Strategy usual_strategy(std::string_view method) {
  return *parse_strategy(method == "full" ? "fsdp" : "ddp");
}

}  // namespace cufit::fit
