// SPDX-License-Identifier: Apache-2.0
#include "explain/provenance.h"

#include <gtest/gtest.h>

namespace cufit::explain {
namespace provenance_test {

bool printed(std::string_view line) { return is_program_output(line, line.find("nvcc fatal")); }

TEST(Provenance, TakesWhatProgramsPutBeforeAMessage) {
  for (std::string_view line :
       {"nvcc fatal : x", "[rank0]: nvcc fatal : x", "2024-01-02 10:00:00 ERROR nvcc fatal : x",
        "#15 12.3 nvcc fatal : x", "I0610 10:00:00 nvcc fatal : x", "$ make; nvcc fatal : x",
        "level=error msg=\"nvcc fatal : x\"", "{\"message\": \"nvcc fatal : x\"}"})
    EXPECT_TRUE(printed(line)) << line;
}

TEST(Provenance, TellsWhatIsQuotedOrTold) {
  for (std::string_view line :
       {"> nvcc fatal : x", "# else nvcc fatal : x", "pip install y  # else nvcc fatal : x",
        "// nvcc fatal : x", "**Q: I get `nvcc fatal : x 'y'`.** Update.", "- nvcc fatal : x",
        "It said \"nvcc fatal : x\" there", "my build: nvcc fatal : x", "说“nvcc fatal : x”",
        "I get: nvcc fatal : x", "last month nvcc fatal : x", "之前 nvcc fatal : x"})
    EXPECT_FALSE(printed(line)) << line;
}

// Every kind of quotation marks, around the message and ended before it.
TEST(Provenance, KnowsEachKindOfQuotationMarks) {
  const char* const marks[][2] = {{"\"", "\""}, {"“", "”"}, {"「", "」"}};
  for (const auto& [opening, closing] : marks) {
    const std::string message = "nvcc fatal : x";
    EXPECT_FALSE(printed(std::string("make ") + opening + message + closing)) << opening;
    EXPECT_TRUE(printed(std::string("make ") + opening + "a" + closing + " " + message)) << opening;
    EXPECT_TRUE(printed(std::string("make ") + opening + message)) << opening;  // left open
  }
}

TEST(Provenance, KnowsGnuQuotationFromMarkdown) {
  const std::string_view line = "libc.so.6: version `GLIBC_2.34' not found (required by `libx')";
  EXPECT_TRUE(is_program_output(line, line.find("GLIBC")));
}

}  // namespace provenance_test
}  // namespace cufit::explain
