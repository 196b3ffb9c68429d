// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/bench_file.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace bench_file_test {

std::string file(const std::string& cases) {
  return R"({"schema":"cufit.bench/1","device":{"name":"NVIDIA H200"},"environments":[)"
         R"({"torch":"2.8.0+cu128","cuda":"12.8"},{"torch":"2.8.0","cuda":"12.6"},{"torch":null}],"cases":[)" +
         cases + "]}";
}

const char* const k_runs =
    R"({"workload":"resnet50","runs":[{"environment":0,"precision":"bf16"},{"environment":1,"precision":"bf16"},)"
    R"({"environment":1,"precision":"fp32"}],"comparisons":[)";

TEST(BenchFile, WhichTorchAndWhichPair) {
  const auto read = parse_bench_file(
      file(std::string(k_runs) +
           R"({"base":0,"other":1,"ratio":{"median":1.02,"low":1.01,"high":1.03}},)"
           R"({"base":1,"other":2,"ratio":{"median":0.5,"low":0.4,"high":0.6}},)"
           R"({"base":0,"other":2,"ratio":{"median":0.5,"low":0.4,"high":0.6}}]})"),
      "m.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->gpu, "NVIDIA H200");
  ASSERT_EQ(read->torches.size(), 3u);
  EXPECT_EQ(read->torches[0].tag, "cu128");
  EXPECT_EQ(read->torches[1].tag, "cu126");
  EXPECT_EQ(read->torches[2].version, "");
  ASSERT_EQ(read->pairs.size(), 1u);  // neither one environment nor two precisions
  EXPECT_EQ(read->pairs[0].other, 1u);
  EXPECT_EQ(read->pairs[0].high, 1.03);
}

TEST(BenchFile, WhatWasNotAloneOrNotSteadyIsDoubtful) {
  const std::string pair = R"({"base":0,"other":1,"ratio":{"median":1,"low":1,"high":1}}]})";
  std::string text = file(std::string(k_runs) + pair);
  EXPECT_FALSE(parse_bench_file(text, "m.json")->doubtful);
  const std::string alone = text;
  text.insert(1, R"("neighbours":[{"pid":7}],)");
  EXPECT_TRUE(parse_bench_file(text, "m.json")->doubtful);
  text = alone;
  const std::string run = R"({"environment":1,"precision":"bf16")";
  text.insert(text.find(run) + run.size(), R"(,"steady":false)");
  EXPECT_TRUE(parse_bench_file(text, "m.json")->doubtful);
}

TEST(BenchFile, WhatIsNoneIsNamed) {
  EXPECT_EQ(parse_bench_file("{", "m.json").error().code, Code::malformed);
  EXPECT_EQ(parse_bench_file(R"({"schema":"cufit.doctor/1"})", "m.json").error().code,
            Code::unsupported);
  for (const char* two : {R"({"base":0,"other":3,"ratio":{"median":1,"low":1,"high":1}}]})",
                          R"({"base":0,"other":1}]})",
                          R"({"base":0,"other":1,"ratio":{"median":-1,"low":1,"high":1}}]})",
                          R"({"base":0,"other":1,"ratio":{"median":1,"low":2,"high":3}}]})"}) {
    const auto read = parse_bench_file(file(std::string(k_runs) + two), "m.json");
    ASSERT_FALSE(read) << two;
    EXPECT_NE(read.error().what.find("m.json"), std::string::npos);
  }
}

TEST(BenchFile, TheTagOfAVersionWithoutOne) {
  EXPECT_EQ(bench_torch("2.8.0", "").tag, "cpu");
  EXPECT_EQ(bench_torch("2.8.0+cpu", "").tag, "cpu");
  EXPECT_EQ(bench_torch("2.8.0", "12.8").version, "2.8.0");
}

}  // namespace bench_file_test
}  // namespace cufit::formats
