// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/cause.h"

#include <set>
#include <utility>

#include "memory/analysis/cause_rules.h"

namespace cufit::analysis {
namespace {

// What explains most goes first: what no need of the program explains, what lies outside of it,
// what it keeps, how its memory lies, and last what one pass needs. A limit that is set on purpose
// stands for the card: it is the root cause only where nothing else is.
// Of one kind only the first is told: the others say the same with less.
enum class Kind : uint8_t { device, kept, layout, pass };
struct RankedRule {
  Rule rule;
  Kind kind;
  bool needs_beginning = true;  // a trace that began late proves nothing for certain
};
constexpr RankedRule k_rules[] = {
    {runaway_request, Kind::pass, false},
    {other_process, Kind::device},
    {weights_exceed_capacity, Kind::kept},
    {stale_reference, Kind::kept},
    {optimizer_state, Kind::kept},
    {growth, Kind::kept, false},
    {kept_outputs, Kind::kept},
    {cudagraph_pool, Kind::layout, false},
    {cross_stream_pending, Kind::layout},
    {eval_without_no_grad, Kind::pass},
    {fragmentation, Kind::layout},
    {attention_quadratic, Kind::pass},
    {autotune_workspace, Kind::pass},
    {decode_spike, Kind::pass},
    {oversized_input, Kind::pass},
    {rescued_request, Kind::layout},
    {activation_peak, Kind::pass},
    {growth_maybe, Kind::kept},
    {tight_limit, Kind::layout},
    {other_process_maybe, Kind::device},
    {gpu_quota_limit, Kind::device, false},
};

}  // namespace

const char* to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::certain:
      return "certain";
    case Confidence::likely:
      return "likely";
    case Confidence::possible:
      break;
  }
  return "possible";
}

Number bytes(std::string name, uint64_t value) {
  return {std::move(name), Number::Kind::bytes, value, {}};
}
Number count(std::string name, uint64_t value) {
  return {std::move(name), Number::Kind::count, value, {}};
}
Number text(std::string name, std::string value) {
  return {std::move(name), Number::Kind::text, 0, std::move(value)};
}

std::vector<Cause> causes_of(const OomCase& facts) {
  std::vector<Cause> causes;
  std::set<Kind> told;
  for (const RankedRule& ranked : k_rules) {
    if (told.count(ranked.kind) != 0) continue;
    std::optional<Cause> cause = ranked.rule(facts);
    if (!cause) continue;
    if (ranked.needs_beginning && began_late(facts) && cause->confidence == Confidence::certain)
      cause->confidence = Confidence::likely;
    told.insert(ranked.kind);
    causes.push_back(std::move(*cause));
  }
  return causes;
}

}  // namespace cufit::analysis
