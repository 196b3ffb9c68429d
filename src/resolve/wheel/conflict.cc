// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/conflict.h"

#include <algorithm>
#include <cstdint>

#include "base/format.h"

namespace cufit::resolve {
namespace {

std::string arg(const Reason& reason, const char* key) {
  const auto found = reason.args.find(key);
  return found == reason.args.end() ? std::string() : found->second;
}

std::string gpu_demand(const TargetGpu& gpu) { return gpu.name + " (" + gpu.cc.text() + ")"; }

// The demands that a reason stands for, all of which it takes; empty = a note, or nobody's demand.
std::vector<std::string> demands_of(const Reason& reason, const Target& target) {
  const std::string& id = reason.id;
  if (id == "requirement" || id == "requirement_companion") return {arg(reason, "requirement")};
  if (id == "extension") {
    // The package has a release for this torch, only not for the oldest GPU.
    const std::string why = arg(reason, "why");
    if ((why == "gpu" || why == "old_gpu") && !target.gpus.empty())
      return {arg(reason, "requirement"), gpu_demand(target.gpus.front())};
    return {arg(reason, "requirement")};
  }
  if (id == "policy") {
    std::vector<std::string> out = {"policy " + arg(reason, "rule")};
    // Of the Pythons that this leaves the rule forbids all.
    if (reason.args.count("requirement") > 0) out.push_back(arg(reason, "requirement"));
    return out;
  }
  if (id == "requires_python") {
    std::vector<std::string> out = {arg(reason, "requirement")};
    if (reason.args.count("python") > 0) out.push_back("Python " + arg(reason, "python"));
    return out;
  }
  if (id == "not_on_index") return {"the index"};
  if (id == "default_index") return {"default index only"};
  if (id == "python") return {"Python " + arg(reason, "have")};
  if (id == "glibc_too_old") return {"glibc " + arg(reason, "have")};
  if (id == "musl") return {"musl libc"};
  if (id == "platform") return {arg(reason, "have")};
  if (id == "driver_too_old" || id == "ptx_too_new")
    return {"driver " + (target.driver ? driver_text(*target.driver) : arg(reason, "have"))};
  if (id == "driver_for_gpu_old" || id == "driver_for_gpu_new")
    return {"driver " + arg(reason, "have")};
  if (id == "gpu_code" || id == "jetson")
    return {arg(reason, "gpu") + " (" + arg(reason, "cc") + ")"};
  return {};
}

// What stands against one wheel: sets of demands, each of which rules it out when all are kept.
using Obstacles = std::vector<uint64_t>;

bool rules_out(uint64_t kept, const Obstacles& obstacles) {
  return std::any_of(obstacles.begin(), obstacles.end(),
                     [&](uint64_t set) { return (set & ~kept) == 0; });
}

// Sets of `left` more demands from `from` on; the first that rules every wheel out.
uint64_t hitting_set(uint64_t set, size_t from, size_t left, size_t count,
                     const std::vector<Obstacles>& wheels) {
  if (left == 0)
    return std::all_of(wheels.begin(), wheels.end(),
                       [&](const Obstacles& one) { return rules_out(set, one); })
               ? set
               : 0;
  for (size_t i = from; i + left <= count; ++i)
    if (const uint64_t found = hitting_set(set | uint64_t{1} << i, i + 1, left - 1, count, wheels))
      return found;
  return 0;
}

// The bits of demands, new ones added; 0 where there are more than fit.
uint64_t bits_of(const std::vector<std::string>& wanted, std::vector<std::string>& demands) {
  uint64_t bits = 0;
  for (const std::string& demand : wanted) {
    const auto at = std::find(demands.begin(), demands.end(), demand);
    const auto index = static_cast<size_t>(at - demands.begin());
    if (at == demands.end()) demands.push_back(demand);
    if (index >= 64) return 0;
    bits |= uint64_t{1} << index;
  }
  return bits;
}

}  // namespace

std::vector<std::string> smallest_conflict(const Answer& answer) {
  std::vector<std::string> demands;
  std::vector<Obstacles> wheels;
  for (const Choice& choice : answer.rejected) {
    // A CPU wheel for a machine with GPUs, or the reverse, is not what anybody asks for here.
    const bool beside = std::any_of(
        choice.verdict.reasons.begin(), choice.verdict.reasons.end(),
        [](const Reason& reason) { return reason.id == "idle_gpu" || reason.id == "no_gpu"; });
    if (beside) continue;
    Obstacles obstacles;
    for (const Reason& reason : choice.verdict.reasons)
      if (const uint64_t bits = bits_of(demands_of(reason, answer.target), demands))
        obstacles.push_back(bits);
    if (obstacles.empty()) return {};  // rejected for what is no demand: nothing to take back
    std::sort(obstacles.begin(), obstacles.end());
    wheels.push_back(std::move(obstacles));
  }
  if (wheels.empty()) return {};
  std::sort(wheels.begin(), wheels.end());
  wheels.erase(std::unique(wheels.begin(), wheels.end()), wheels.end());
  const size_t count = std::min<size_t>(demands.size(), 20);
  for (size_t size = 1; size <= count; ++size) {
    const uint64_t found = hitting_set(0, 0, size, count, wheels);
    if (found == 0) continue;
    std::vector<std::string> conflict;
    for (size_t i = 0; i < count; ++i)
      if ((found >> i & 1u) != 0) conflict.push_back(demands[i]);
    return conflict;
  }
  return {};
}

}  // namespace cufit::resolve
