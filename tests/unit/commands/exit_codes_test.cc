// SPDX-License-Identifier: Apache-2.0
// Exit codes are what scripts go by. `doctor`: 1 where a finding is at or above --fail-on. `fit`: 0
// where the program fits every card that was asked for, 1 where it does not fit one of them. 2 for
// a question that cannot be read.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {
namespace exit_codes_test {

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

// Which levels fail on machines whose worst finding is nothing, a note, a warning and an error.
TEST(DoctorExit, FailsOnTheNamedLevelAndAboveIt) {
  const struct {
    const char* machine;
    const char* fails;  // of note, unknown, warning, error, never: y or n
  } rows[] = {{"h200-torch211-cu130", "nnnnn"},
              {"rtx3090-torch215-cu132", "ynnnn"},
              {"kubernetes-shm-64mib", "yyynn"},
              {"rtx3090-driver520-cu121", "yyyyn"}};
  const char* const levels[] = {"note", "unknown", "warning", "error", "never"};
  for (const auto& row : rows) {
    const std::string facts =
        CUFIT_SOURCE_DIR "/tests/machines/" + std::string(row.machine) + "/facts.json";
    for (size_t i = 0; i < std::size(levels); ++i)
      EXPECT_EQ(cufit({"doctor", "--from", facts.c_str(), "--fail-on", levels[i]}).code,
                row.fails[i] == 'y' ? k_findings : k_ok)
          << row.machine << " " << levels[i];
    EXPECT_EQ(cufit({"doctor", "--from", facts.c_str()}).code,
              row.fails[3] == 'y' ? k_findings : k_ok)
        << row.machine;
  }
  EXPECT_EQ(cufit({"doctor", "--fail-on", "sometimes"}).code, k_usage);
  EXPECT_EQ(cufit({"doctor", "--from", "/nonexistent/facts.json"}).code, k_failed);
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

}  // namespace exit_codes_test
}  // namespace cufit::commands
