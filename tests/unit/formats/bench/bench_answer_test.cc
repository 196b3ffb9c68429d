// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/bench_answer.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace bench_answer_test {

TEST(BenchAnswer, Hello) {
  const auto read = parse_bench_hello(
      R"({"python":"3.12.3","torch":"2.8.0+cu128","cuda":"12.8","cudnn":91002,"device":{"name":"NVIDIA H200",)"
      R"("capability":"9.0","uuid":null,"memory_bytes":150110011392}})");
  EXPECT_EQ(read.refusal.kind, "");
  EXPECT_EQ(read.value.torch, "2.8.0+cu128");
  EXPECT_EQ(read.value.cudnn, 91002u);
  ASSERT_TRUE(read.value.gpu);
  EXPECT_EQ(read.value.gpu->capability, "9.0");
  EXPECT_EQ(read.value.gpu->uuid, "");
}

TEST(BenchAnswer, RefusalsAreThoseThatAreKnown) {
  const auto read =
      parse_bench_hello(R"({"error":"no_torch","why":"ModuleNotFoundError: \u001b[2J"})");
  EXPECT_EQ(read.refusal.kind, "no_torch");
  EXPECT_EQ(read.refusal.why.find('\x1b'), std::string::npos);
  EXPECT_EQ(parse_bench_block(R"({"error":"rm -rf","why":""})").refusal.kind, "garbage");
}

TEST(BenchAnswer, NumbersAreInRange) {
  EXPECT_EQ(parse_bench_block(R"({"calls":4,"seconds":0.5,"begin":10,"end":10.5,"reserved":null})")
                .refusal.kind,
            "");
  for (const char* line :
       {"", "warming up...", "[]", "{}", R"({"calls":0,"seconds":1,"begin":1,"end":2})",
        R"({"calls":1,"seconds":0,"begin":1,"end":2})",
        R"({"calls":1,"seconds":-1,"begin":1,"end":2})",
        R"({"calls":1,"seconds":1e300,"begin":1,"end":2})",
        R"({"calls":1,"seconds":1,"begin":3,"end":2})",
        R"({"calls":1,"seconds":1,"begin":1,"end":2,"reserved":-5})",
        R"({"calls":"1","seconds":1,"begin":1,"end":2})"})
    EXPECT_EQ(parse_bench_block(line).refusal.kind, "garbage") << line;
  EXPECT_EQ(
      parse_bench_loaded(R"({"items":0,"unit":"x","batch":1,"shape":"","seconds":1})").refusal.kind,
      "garbage");
  EXPECT_EQ(
      parse_bench_loaded(R"({"items":64,"unit":"images","batch":64,"shape":"s","seconds":0.1})")
          .value.batch,
      64u);
}

}  // namespace bench_answer_test
}  // namespace cufit::formats
