// SPDX-License-Identifier: Apache-2.0
#include "cli/case_file.h"

#include <gtest/gtest.h>

namespace cufit::cli_tests {
namespace {

CaseFile read(std::string_view text) {
  std::string problem;
  const std::optional<CaseFile> file = parse_case(text, problem);
  EXPECT_TRUE(file) << problem;
  return file.value_or(CaseFile{});
}

std::string problem_of(std::string_view text) {
  std::string problem;
  EXPECT_FALSE(parse_case(text, problem)) << text;
  return problem;
}

// What is read after it was written.
CaseFile again(const std::string& out, const std::string& err, int code) {
  CaseFile file;
  file.head = "--- script\nx\n";
  file.out = out;
  file.err = err;
  file.exit_code = code;
  return read(case_text(file));
}

TEST(CaseFile, IsReadInItsParts) {
  const CaseFile file = read(
      "# What it shows\n\n--- columns 80\n--- script\necho a\necho b >&2\n"
      "--- stdout\na\n\n--- stderr\nb\n--- exit 3\n");
  EXPECT_EQ(file.head, "# What it shows\n\n--- columns 80\n--- script\necho a\necho b >&2\n");
  EXPECT_EQ(file.columns, 80);
  EXPECT_EQ(file.script, "echo a\necho b >&2\n");
  EXPECT_EQ(file.out, "a\n\n");
  EXPECT_EQ(file.err, "b\n");
  EXPECT_EQ(file.exit_code, 3);
}

TEST(CaseFile, ExpectsNothingWhereNothingIsWritten) {
  const CaseFile file = read("--- script\ntrue\n");
  EXPECT_EQ(file.columns, 0);
  EXPECT_EQ(file.out + file.err, "");
  EXPECT_EQ(file.exit_code, 0);
}

TEST(CaseFile, KeepsEveryByteOfWhatIsExpected) {
  std::string every_byte;
  for (int c = 0; c < 256; ++c) every_byte += static_cast<char>(c);
  for (const std::string& text :
       {std::string("plain\n"), std::string("no newline"), std::string("\n"), std::string("\n\n"),
        std::string("\nfirst line empty"), std::string("a\r\nb\r\n"), std::string("\033[1mred\n"),
        std::string("--- exit 1\n---\n\\--- x\n\\\n\\ no newline at end\n\\ no newline at end"),
        std::string("--- exit 1\r\n\\--- x\r\n\\r\n\\ no newline at end\r"),
        std::string("\0\n\0", 3), std::string("\xff\n"), std::string("\xe4\xb8\xad\t\\n\n"),
        std::string("\xe4\xb8\xad\r\n"), std::string("\xe4\xb8"), every_byte}) {
    EXPECT_EQ(again(text, "", 0).out, text) << text;
    EXPECT_EQ(again("x", text, 7).err, text) << text;
    EXPECT_EQ(again(text, text, 255).exit_code, 255);
  }
}

TEST(CaseFile, WritesReadableTextAsItIs) {
  CaseFile file = read("# Why\n--- script\ntrue\n--- stdout\nold\n--- exit 2\n");
  file.out = "\xe4\xb8\xad\n\tC:\\x\n--- x\n";
  file.err = "a\r\n\x01";
  file.exit_code = 0;
  EXPECT_EQ(case_text(file),
            "# Why\n--- script\ntrue\n--- stdout\n\xe4\xb8\xad\n\tC:\\x\n\\--- x\n"
            "--- stderr escaped\na\\r\n\\x01\n\\ no newline at end\n");
}

TEST(CaseFile, EscapesWhatEndsWithinALetter) {
  CaseFile file = read("--- script\ntrue\n");
  file.out = "\xe4\xb8\n\xe4\xb8";
  EXPECT_EQ(case_text(file),
            "--- script\ntrue\n--- stdout escaped\n\\xe4\\xb8\n\\xe4\\xb8\n"
            "\\ no newline at end\n");
  file.out = "\xe4\xb8";
  EXPECT_EQ(case_text(file),
            "--- script\ntrue\n--- stdout escaped\n\\xe4\\xb8\n\\ no newline at end\n");
}

TEST(CaseFile, ScriptMayHoldOurSigns) {
  EXPECT_EQ(read("--- script\ncat <<E\n\\--- stdout\n\\\\x\nE\n").script,
            "cat <<E\n--- stdout\n\\x\nE\n");
}

TEST(CaseFile, SaysWhichLineIsDamaged) {
  EXPECT_EQ(problem_of(""), "line 0: there is no \"--- script\" with lines below it");
  EXPECT_EQ(problem_of("--- stdout\na\n"),
            "line 2: there is no \"--- script\" with lines below it");
  EXPECT_EQ(problem_of("--- script\nx"), "line 2: no newline ends the file: it was cut off");
  EXPECT_EQ(problem_of("echo x\n--- script\nx\n"),
            "line 1: only comments (#) stand before the first \"--- \" line");
  EXPECT_EQ(problem_of("--- script\nx\n--- stdot\na\n"),
            "line 3: \"--- stdot\" is no section; text that begins so is written \"\\---\"");
  const std::string order = "the order is columns, script, stdout, stderr, exit, each at most once";
  EXPECT_EQ(problem_of("--- script\nx\n--- stderr\na\n--- stdout\nb\n"), "line 5: " + order);
  EXPECT_EQ(problem_of("--- script\nx\n--- stdout\n--- stdout\n"), "line 4: " + order);
  EXPECT_EQ(problem_of("--- script\nx\r\n").substr(0, 34), "line 2: a carriage return ends it;");
  EXPECT_EQ(problem_of("--- script\nx\n--- stdout\n\\a\n"),
            "line 4: a line that begins with \"\\\" is written with \"\\\\\"");
  EXPECT_EQ(problem_of("--- script\nx\n--- stdout raw\na\n"), "line 3: \"raw\" is not \"escaped\"");
  for (const char* bad : {"\\q", "\\x0", "\\x0G", "end\\"}) {
    EXPECT_EQ(problem_of(std::string("--- script\nx\n--- stdout escaped\n") + bad + "\n"),
              "line 4: an escape is none of \\r \\t \\e \\\\ \\- \\x00 to \\xff");
  }
  EXPECT_EQ(problem_of("--- script\nx\n--- stdout\n\\ no newline at end\n"),
            "line 4: \"\\ no newline at end\" stands after a section's last line");
  EXPECT_EQ(problem_of("--- script\nx\n--- stdout\na\n\\ no newline at end\nb\n"),
            "line 5: \"\\ no newline at end\" stands after a section's last line");
}

TEST(CaseFile, SaysWhichNumberIsDamaged) {
  for (const char* bad :
       {"--- exit", "--- exit 0", "--- exit 256", "--- exit one", "--- exit 1x"}) {
    EXPECT_EQ(problem_of("--- script\nx\n" + std::string(bad) + "\n"),
              "line 3: \"--- exit\" has a number from 1 to 255 behind it");
  }
  EXPECT_EQ(problem_of("--- script\nx\n--- exit 1\nmore\n"),
            "line 4: \"--- exit\" has no lines below it");
  EXPECT_EQ(problem_of("--- columns wide\n--- script\nx\n"),
            "line 1: \"--- columns\" has a number from 1 to 500 behind it");
}

}  // namespace
}  // namespace cufit::cli_tests
