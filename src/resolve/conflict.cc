// SPDX-License-Identifier: Apache-2.0
#include "resolve/conflict.h"

#include <algorithm>
#include <cstdint>

#include "base/format.h"

namespace cufit::resolve {
namespace {

std::string arg(const Reason& reason, const char* key) {
  const auto found = reason.args.find(key);
  return found == reason.args.end() ? std::string() : found->second;
}

// The demand that a reason speaks for; empty = a note, or nobody's demand.
std::string demand_of(const Reason& reason, const Target& target) {
  const std::string& id = reason.id;
  if (id == "requirement" || id == "extension") return arg(reason, "requirement");
  if (id == "policy") return "policy " + arg(reason, "rule");
  if (id == "not_on_index") return "the index";
  if (id == "default_index") return "default index only";
  if (id == "python") return "Python " + arg(reason, "have");
  if (id == "glibc_too_old") return "glibc " + arg(reason, "have");
  if (id == "musl") return "musl libc";
  if (id == "platform") return arg(reason, "have");
  if (id == "driver_too_old" || id == "ptx_too_new")
    return "driver " + (target.driver ? driver_text(*target.driver) : arg(reason, "have"));
  if (id == "driver_for_gpu_old" || id == "driver_for_gpu_new")
    return "driver " + arg(reason, "have");
  if (id == "gpu_code" || id == "jetson")
    return arg(reason, "gpu") + " (" + arg(reason, "cc") + ")";
  return {};
}

bool hits_all(uint64_t set, const std::vector<uint64_t>& violations) {
  return std::all_of(violations.begin(), violations.end(),
                     [&](uint64_t violated) { return (violated & set) != 0; });
}

// Sets of `left` more demands from `from` on; the first that hits every wheel.
uint64_t hitting_set(uint64_t set, size_t from, size_t left, size_t count,
                const std::vector<uint64_t>& violations) {
  if (left == 0) return hits_all(set, violations) ? set : 0;
  for (size_t i = from; i + left <= count; ++i)
    if (const uint64_t found = hitting_set(set | uint64_t{1} << i, i + 1, left - 1, count, violations))
      return found;
  return 0;
}

}  // namespace

std::vector<std::string> smallest_conflict(const Answer& answer) {
  std::vector<std::string> demands;
  std::vector<uint64_t> violations;
  for (const Choice& choice : answer.rejected) {
    // A CPU wheel for a machine with GPUs, or the reverse, is not what anybody asks for here.
    const bool beside = std::any_of(
        choice.verdict.reasons.begin(), choice.verdict.reasons.end(),
        [](const Reason& reason) { return reason.id == "idle_gpu" || reason.id == "no_gpu"; });
    if (beside) continue;
    uint64_t violated = 0;
    for (const Reason& reason : choice.verdict.reasons) {
      const std::string demand = demand_of(reason, answer.target);
      if (demand.empty()) continue;
      const auto at = std::find(demands.begin(), demands.end(), demand);
      const auto index = static_cast<size_t>(at - demands.begin());
      if (at == demands.end()) demands.push_back(demand);
      if (index < 64) violated |= uint64_t{1} << index;
    }
    if (violated == 0) return {};  // rejected for a reason that is no demand: nothing to take back
    violations.push_back(violated);
  }
  if (violations.empty()) return {};
  std::sort(violations.begin(), violations.end());
  violations.erase(std::unique(violations.begin(), violations.end()), violations.end());
  const size_t count = std::min<size_t>(demands.size(), 20);
  for (size_t size = 1; size <= count; ++size) {
    const uint64_t found = hitting_set(0, 0, size, count, violations);
    if (found == 0) continue;
    std::vector<std::string> conflict;
    for (size_t i = 0; i < count; ++i)
      if ((found >> i & 1u) != 0) conflict.push_back(demands[i]);
    return conflict;
  }
  return {};
}

}  // namespace cufit::resolve
