// SPDX-License-Identifier: Apache-2.0
#include "host/fleet/fan_out.h"

#include <gtest/gtest.h>

#include <chrono>

namespace cufit::host {
namespace {

std::vector<FanOutAnswer> answers_of(const std::vector<FanOutTask>& tasks,
                                     const FanOutOptions& options = {}) {
  Interrupts interrupts;
  Result<std::vector<FanOutAnswer>> out = fan_out(tasks, options, interrupts);
  EXPECT_TRUE(out);
  return out ? std::move(*out) : std::vector<FanOutAnswer>();
}

FanOutTask shell(const std::string& name, const std::string& script) {
  return {name, {"sh", "-c", script}};
}

TEST(FanOut, KeepsTheOrderAndWhatEachSaid) {
  const auto out = answers_of({shell("a", "sleep 0.2; echo one"), shell("b", "echo two; exit 3"),
                               shell("c", "echo bad >&2; kill -9 $$")});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].name + out[0].out, "aone\n");
  EXPECT_EQ(out[1].out, "two\n");
  EXPECT_EQ(out[1].code, 3);
  EXPECT_EQ(out[2].err, "bad\n");
  EXPECT_EQ(out[2].code, 128 + 9);
}

TEST(FanOut, NamesWhatCannotBeStarted) {
  const auto out = answers_of({{"a", {"/nonexistent/program"}}, shell("b", "echo x")});
  EXPECT_EQ(out[0].start_error, "No such file or directory");
  EXPECT_EQ(out[1].out, "x\n");
}

TEST(FanOut, EndsWhoHangsWithAllThatItStarted) {
  const auto begun = std::chrono::steady_clock::now();
  FanOutOptions options;
  options.seconds = 0.5;
  const auto out = answers_of({shell("a", "sleep 60 & sleep 60"), shell("b", "echo x")}, options);
  EXPECT_TRUE(out[0].timed_out);
  EXPECT_FALSE(out[1].timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

TEST(FanOut, BoundsWhatIsKept) {
  FanOutOptions options;
  options.most_bytes = 10000;
  const auto out =
      answers_of({shell("a", "yes"), shell("b", "yes >&2 & sleep 0.2; kill $!")}, options);
  EXPECT_TRUE(out[0].too_long);
  EXPECT_LT(out[0].out.size(), 200000u);
  EXPECT_LE(out[1].err.size(), 4096u);
}

TEST(FanOut, ManyAtOnceAndMoreThanThat) {
  std::vector<FanOutTask> tasks;
  for (int i = 0; i < 100; ++i)
    tasks.push_back(shell(std::to_string(i), "echo " + std::to_string(i)));
  size_t told = 0;
  FanOutOptions options;
  options.at_once = 7;
  options.progress = [&](size_t done) { told = done; };
  const auto out = answers_of(tasks, options);
  EXPECT_EQ(told, 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(out[size_t(i)].out, std::to_string(i) + "\n");
}

}  // namespace
}  // namespace cufit::host
