// SPDX-License-Identifier: Apache-2.0
#include "formats/python/env_record.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace env_record_test {

TEST(EnvRecord, ComesBackAsItWasWritten) {
  EnvRecord record{"cu126",       "pylock.cu126.toml",
                   "ab",          "2026-11-21T23:05:00Z",
                   "uv 0.13.9",   "3.11",
                   "2.7.1+cu126", 24,
                   100,           60};
  const std::string text = env_record_text(record);
  const Result<EnvRecord> back = parse_env_record(text, "x.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(env_record_text(*back), text);
  EXPECT_EQ(back->installer, "uv 0.13.9");
  EXPECT_EQ(back->shared_bytes, 60u);
}

TEST(EnvRecord, OfAnotherSchemaOrDamagedIsAnError) {
  const auto code_of = [](const char* text) {
    const Result<EnvRecord> record = parse_env_record(text, "x.json");
    return record ? std::string("read") : std::string(to_string(record.error().code));
  };
  EXPECT_EQ(code_of("{"), "malformed");
  EXPECT_EQ(code_of("[]"), "malformed");
  EXPECT_EQ(code_of(R"({"schema": "cufit.env/2"})"), "unsupported");
  EXPECT_EQ(code_of(R"({"schema": "cufit.env/1", "class": 3})"), "malformed");
  EXPECT_EQ(code_of(R"({"schema": "cufit.env/1", "class": "a"})"), "malformed");
}

// A size that no environment can have is not told: 0 stands for "not known".
TEST(EnvRecord, NumbersThatCannotBeAreNotKnown) {
  for (const char* bytes : {"-4", "1.5", "\"7\"", "null", "18446744073709551616"}) {
    const Result<EnvRecord> record = parse_env_record(
        std::string(
            R"({"schema": "cufit.env/1", "class": "a", "pylock_sha256": "b", "packages": 3,)") +
            "\"bytes\": " + bytes + "}",
        "x.json");
    ASSERT_TRUE(record) << bytes << ": " << record.error().text();
    EXPECT_EQ(record->bytes, 0u) << bytes;
    EXPECT_EQ(record->packages, 3u) << bytes;
  }
}

}  // namespace env_record_test
}  // namespace cufit::formats
