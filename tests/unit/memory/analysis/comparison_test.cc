// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/comparison.h"

#include <gtest/gtest.h>

#include "traces.h"

namespace cufit::analysis {
namespace comparison_test {

Observation seen(const std::string& name) {
  return observe(real_trace(name).snapshot, real_trace(name).verified, std::nullopt);
}

// The changes of all places are the change of the peak, to the byte.
TEST(Comparison, PlacesAddUpToTheDifference) {
  const char* const pairs[][2] = {{"oom/survives", "oom/tensors_kept"},
                                  {"oom/graph_retained", "oom/survives"},
                                  {"trace-gpt2-stacks", "oom-varlen"},
                                  {"varlen", "varlen-expandable"},
                                  {"failures/kept", "failures/keptok"}};
  for (const auto& pair : pairs) {
    const Observation a = seen(pair[0]), b = seen(pair[1]);
    int64_t sum = 0;
    for (const PlaceChange& change :
         place_changes(real_trace(pair[0]).snapshot, a, real_trace(pair[1]).snapshot, b))
      sum += change.grew_bytes();
    EXPECT_EQ(sum, static_cast<int64_t>(b.peak.moment.allocated_bytes) -
                       static_cast<int64_t>(a.peak.moment.allocated_bytes))
        << pair[0] << " " << pair[1];
  }
}

TEST(Comparison, NothingChangesAgainstItself) {
  const Observation one = seen("oom/survives");
  const memory::Snapshot& snapshot = real_trace("oom/survives").snapshot;
  for (const PlaceChange& change : place_changes(snapshot, one, snapshot, one))
    EXPECT_EQ(change.grew_bytes(), 0);
}

// The program that keeps logits against the one that does not: the place that makes them grew most.
TEST(Comparison, NamesThePlaceThatGrew) {
  const Observation a = seen("oom/survives"), b = seen("oom/tensors_kept");
  const memory::Snapshot& snapshot = real_trace("oom/tensors_kept").snapshot;
  const auto changes = place_changes(real_trace("oom/survives").snapshot, a, snapshot, b);
  ASSERT_FALSE(changes.empty());
  ASSERT_LT(changes[0].in_b.frame, k_not_python);
  const memory::Frame& frame = snapshot.stacks.frame(changes[0].in_b.frame);
  EXPECT_EQ(snapshot.text(frame.name), "forward");
  EXPECT_EQ(frame.line, 60u);  // self.head(x)
}

}  // namespace comparison_test
}  // namespace cufit::analysis
