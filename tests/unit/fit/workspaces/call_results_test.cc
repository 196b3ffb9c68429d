// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/call_results.h"

#include <gtest/gtest.h>

#include <random>

#include "fit/workspaces/workspaces.h"

namespace cufit::fit {
namespace call_results_test {

// A call of a library, one that is no operator, allocs of two places, a free.
enum Kind : uint8_t { k_call, k_no_operator, k_alloc, k_other_alloc, k_free };

StepProgram program_of(const std::vector<Kind>& kinds) {
  StepProgram out;
  out.texts = {"mm", std::string(k_empty_cache), ""};
  out.sites = {{0, 2, 2}, {1, 2, 2}, {0, 2, 2}};
  out.calls = {{0, 0, 0}, {1, 0, 0}};
  for (const Kind kind : kinds) {
    StepEvent event;
    event.kind = kind <= k_no_operator ? StepEventKind::call
                 : kind == k_free      ? StepEventKind::free
                                       : StepEventKind::alloc;
    event.index = kind == k_no_operator ? 1 : 0;
    event.site = kind == k_no_operator ? 1 : kind == k_other_alloc ? 2 : 0;
    out.events.push_back(event);
  }
  return out;
}

// As the header says it, from each call anew.
size_t event_of(const std::vector<Kind>& kinds, size_t call) {
  size_t before = 0, last = call;
  while (call > before && kinds[call - before - 1] == k_call) ++before;
  while (last + 1 < kinds.size() && kinds[last + 1] == k_call) ++last;
  const auto is_alloc = [](Kind kind) { return kind == k_alloc || kind == k_other_alloc; };
  size_t out = last;
  for (size_t i = 0; i <= before && out + 1 < kinds.size() && is_alloc(kinds[out + 1]); ++i) ++out;
  return out;
}

size_t after_all(const std::vector<Kind>& kinds, size_t call, size_t left_out) {
  size_t first = call;
  while (first < kinds.size() && kinds[first] <= k_no_operator) ++first;
  size_t end = first;
  while (end < kinds.size() && kinds[end] == kinds[first] &&
         (kinds[end] == k_alloc || kinds[end] == k_other_alloc))
    ++end;
  return end - first > left_out ? end - 1 - left_out : call;
}

TEST(CallResults, AreThoseOfEachCallAlone) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Kind> kinds;
    for (size_t i = 0; i < 40; ++i) kinds.push_back(static_cast<Kind>(random() % 8 % 5));
    const StepProgram program = program_of(kinds);
    CallResults results(program);
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] != k_call) continue;
      EXPECT_EQ(results.event_of(i), event_of(kinds, i)) << round << " " << i;
      for (const size_t left_out : {0u, 1u})
        EXPECT_EQ(results.after_all(i, left_out), after_all(kinds, i, left_out)) << round << " " << i;
    }
  }
}

// A file may hold millions: looked at from each anew, these would take hours.
TEST(CallResults, LookAtEachEventOnce) {
  constexpr size_t k_calls = 1u << 20;
  std::vector<Kind> kinds(k_calls, k_call);
  kinds.insert(kinds.end(), k_calls, k_alloc);
  const StepProgram program = program_of(kinds);
  CallResults results(program);
  for (size_t i = 0; i < k_calls; ++i) {
    ASSERT_EQ(results.event_of(i), k_calls + i);
    ASSERT_EQ(results.after_all(i, 0), 2 * k_calls - 1);
  }
}

}  // namespace call_results_test
}  // namespace cufit::fit
