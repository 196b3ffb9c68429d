// SPDX-License-Identifier: Apache-2.0
// The step of `cufit bench loader` where a time is missing.
#include "report/bench_loader.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::report {
namespace bench_loader_text_test {

std::string step_of(const formats::LoaderAnswer& answer, std::optional<LoaderEnd> end = {}) {
  const resolve::LoaderHost host;
  const resolve::LoaderAdvice advice = resolve::advise(answer, host);
  Style style;
  style.width = 400;
  const std::string text =
      bench_loader_text({answer, advice, host, knowledge::Knowledge::builtin(), end}, style);
  return text.substr(text.find("Next: "));
}

formats::LoaderAnswer untimed() {
  formats::LoaderAnswer out;
  out.num_workers = 2;
  out.step_seconds = 0.1;
  out.alone.emplace_back();
  out.alone.back().workers = 2;
  out.alone.back().batches = 1;
  return out;
}

// More time is advised where it helps, and nowhere else.
TEST(BenchLoaderText, AMissingTimeHasItsOwnStep) {
  formats::LoaderAnswer answer = untimed();
  EXPECT_TRUE(contains(step_of(answer), "larger `--time`"));
  answer.alone[0].batches = 0;
  EXPECT_TRUE(contains(step_of(answer), "iterated once only"));
  answer.alone[0].error = "RuntimeError: no luck";
  EXPECT_TRUE(contains(step_of(answer), "failed when it was iterated alone"));
  EXPECT_TRUE(contains(step_of(answer, LoaderEnd{137, false}), "says why it ended"));
}

}  // namespace bench_loader_text_test
}  // namespace cufit::report
