// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/stack_groups.h"

#include <algorithm>
#include <unordered_map>

namespace cufit::analysis {
namespace {

struct Weight {
  uint32_t stack = 0;
  uint64_t at_peak = 0;
  double area = 0;  // bytes times events; a double, since 2^64 is soon reached
};

double events_held(const Lifetime& row, uint32_t events) {
  const uint32_t from = row.alloc_event == k_before ? 0 : row.alloc_event;
  const uint32_t to = std::min(row.free_requested, events);
  return to > from ? to - from : 0;
}

std::vector<Weight> weights(const Lifetimes& lifetimes, uint32_t peak) {
  std::unordered_map<uint32_t, size_t> at;
  std::vector<Weight> out;
  for (const Lifetime& row : lifetimes.rows) {
    const auto [found, is_new] = at.try_emplace(row.stack, out.size());
    if (is_new) out.push_back({row.stack, 0, 0});
    Weight& weight = out[found->second];
    if (is_allocated(row, peak)) weight.at_peak += row.block_bytes;
    weight.area += static_cast<double>(row.block_bytes) * events_held(row, lifetimes.events);
  }
  return out;
}

}  // namespace

StackGroups stack_groups(const Lifetimes& lifetimes, uint32_t peak, size_t groups) {
  groups = std::min<size_t>(groups, 254);
  std::vector<Weight> all = weights(lifetimes, peak);
  const auto by_peak = [](const Weight& a, const Weight& b) {
    return a.at_peak != b.at_peak ? a.at_peak > b.at_peak : a.stack < b.stack;
  };
  const auto by_area = [](const Weight& a, const Weight& b) {
    return a.area != b.area ? a.area > b.area : a.stack < b.stack;
  };
  std::sort(all.begin(), all.end(), by_peak);
  const size_t first = std::min(all.size(), groups - groups / 3);
  std::sort(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(), by_area);
  if (all.size() > groups) all.resize(groups);
  std::sort(all.begin(), all.end(), by_peak);
  StackGroups out;
  std::unordered_map<uint32_t, uint8_t> group;
  for (const Weight& weight : all) {
    out.stacks.push_back(weight.stack);
    group[weight.stack] = static_cast<uint8_t>(out.stacks.size());
  }
  for (const Lifetime& row : lifetimes.rows) {
    const auto found = group.find(row.stack);
    out.of_row.push_back(found == group.end() ? 0 : found->second);
  }
  return out;
}

}  // namespace cufit::analysis
