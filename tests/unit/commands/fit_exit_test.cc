// SPDX-License-Identifier: Apache-2.0
// The exit code of `cufit fit` is what a job script goes by: 0 where the program fits every card
// that was asked for, 1 where it does not fit one of them, 2 for a question that cannot be read.
#include <gtest/gtest.h>

#include <vector>

#include "commands/command.h"

namespace cufit::commands {
namespace {

struct Said {
  int code;
  std::string out;
};

Said cufit(std::vector<const char*> words) {
  words.insert(words.begin(), "cufit");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run(static_cast<int>(words.size()), words.data());
  testing::internal::GetCapturedStderr();
  return {code, testing::internal::GetCapturedStdout()};
}

// 16 GiB at batch 1000.
constexpr const char* k_small = CUFIT_SOURCE_DIR "/tests/fit/small-8.events";
constexpr const char* k_large = CUFIT_SOURCE_DIR "/tests/fit/small-16.events";

Said fit(std::vector<const char*> gpus, const char* batch = "1000") {
  std::vector<const char*> words = {"fit", "--json", "--batch", batch};
  for (const char* gpu : gpus) words.insert(words.end(), {"--gpu", gpu});
  words.insert(words.end(), {"--events", k_small, k_large});
  return cufit(words);
}

TEST(FitExit, SaysWhetherEveryCardFits) {
  EXPECT_EQ(fit({"24"}).code, k_ok);
  EXPECT_EQ(fit({"12"}).code, k_findings);
  EXPECT_EQ(fit({"12", "24"}).code, k_findings);
  EXPECT_EQ(fit({"24", "12"}).code, k_findings);
  EXPECT_EQ(fit({"12"}, "auto").code, k_ok);  // the program's own batch size
  EXPECT_EQ(fit({"no such card"}).code, k_usage);
  EXPECT_EQ(fit({"24"}, "0").code, k_usage);
}

// With `all`, cards are shown that nobody asked for by name: that one of them is too small is no
// finding.
TEST(FitExit, CardsThatNobodyNamedDoNotCount) {
  const Said all = fit({"all"});
  EXPECT_EQ(all.code, k_ok);
  EXPECT_NE(all.out.find("\"fits\": false"), std::string::npos);
  EXPECT_NE(all.out.find("\"fits\": true"), std::string::npos);
  EXPECT_EQ(fit({"12", "all"}).code, k_findings);
}

TEST(FitExit, IsTheSameForARecording) {
  const auto code = [](const char* gpu) {
    return cufit({"fit", "--from", CUFIT_SOURCE_DIR "/tests/traces/pairs/gpt2-8.pkl.gz",
                  "--batch-was", "8", "--gpu", gpu})
        .code;
  };
  EXPECT_EQ(code("24"), k_ok);
  EXPECT_EQ(code("3"), k_findings);
}

}  // namespace
}  // namespace cufit::commands
