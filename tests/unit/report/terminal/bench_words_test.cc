// SPDX-License-Identifier: Apache-2.0
// The sentence under a table of `cufit bench`.
#include "report/bench.h"

#include <gtest/gtest.h>

namespace cufit::report {
namespace bench_words_test {

resolve::BenchMeasurement measured(size_t count,
                                   std::vector<resolve::BenchComparison> comparisons) {
  resolve::BenchMeasurement out;
  out.cases.emplace_back();
  for (size_t i = 0; i < count; ++i) {
    out.environments.emplace_back();
    out.environments.back().name = std::string(1, static_cast<char>('a' + i));
    resolve::BenchRun run;
    run.environment = i;
    run.rate = resolve::Interval{100 - static_cast<double>(i), 90, 110};
    out.cases[0].runs.push_back(run);
  }
  for (resolve::BenchComparison& one : comparisons) one.difference = difference_of(one.ratio);
  out.cases[0].comparisons = std::move(comparisons);
  return out;
}

std::string verdict(const resolve::BenchMeasurement& result) {
  const BenchView view{result, 0, {}, knowledge::Knowledge::builtin()};
  return bench_verdict(result.cases[0], view, "en");
}

// a and c could not be told apart: "0.8 % faster, 1.2 to 3 %" of an interval around 1 is no sentence.
TEST(BenchWords, TheNextOneIsOneThatItBeats) {
  EXPECT_EQ(verdict(measured(3, {{1, 0, {1.02, 1.01, 1.03}, {}},
                                 {2, 0, {1.008, 0.988, 1.03}, {}},
                                 {2, 1, {1.02, 1.01, 1.03}, {}}})),
            "a is the fastest: 2.0 % faster than b, the next one (95 % interval: 1.0 to 3.0 %)");
}

TEST(BenchWords, ACircleIsNoDifference) {
  EXPECT_EQ(verdict(measured(3, {{1, 0, {1.02, 1.01, 1.03}, {}},
                                 {2, 1, {1.02, 1.01, 1.03}, {}},
                                 {0, 2, {1.02, 1.01, 1.03}, {}}})),
            "no difference (inside the noise) between a, b, c");
}

}  // namespace bench_words_test
}  // namespace cufit::report
