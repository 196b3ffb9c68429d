// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/batch_argument.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "commands/fit/shell_words.h"

namespace cufit::commands {
namespace batch_argument_test {

struct Row {
  const char* argument;
  const char* command;
  int before;  // the batch size that stands in the command; 0: none
  const char* after;
};

TEST(FitBatch, StandsInTheCommandOrIsAppended) {
  const Row rows[] = {
      {"--batch-size {}", "python t.py", 0, "python t.py --batch-size 32"},
      {"--batch-size {}", "python t.py --batch-size 8 -v", 8, "python t.py --batch-size 32 -v"},
      {"--batch-size {}", "python t.py --batch-size=8 -v", 8, "python t.py --batch-size=32 -v"},
      {"--batch-size={}", "python t.py -v", 0, "python t.py -v --batch-size=32"},
      {"--batch-size={}", "python t.py --batch-size 8", 8, "python t.py --batch-size 32"},
      {"data.batch={}", "python t.py data.batch=4 x=1", 4, "python t.py data.batch=32 x=1"},
      {"-b {}", "python t.py -b 2 -b 6", 6, "python t.py -b 32 -b 32"},
      {"--sizes {},1", "python t.py --sizes 4,1", 4, "python t.py --sizes 32,1"},
      {"--sizes {},1", "python t.py --sizes 4", 0, "python t.py --sizes 32,1"},
      {"--batch {}", "python t.py --batch-size 8", 0, "python t.py --batch-size 8 --batch 32"},
      {"--batch-size {}", "python t.py --batch-size", 0,
       "python t.py --batch-size --batch-size 32"},
      {" --bs  {} ", "python t.py --bs auto", 0, "python t.py --bs 32"},
  };
  for (const Row& row : rows) {
    const Result<BatchArgument> argument = parse_batch_argument(row.argument);
    ASSERT_TRUE(argument) << row.argument;
    std::vector<std::string> command;
    for (const std::string_view word : split(row.command, ' ')) command.emplace_back(word);
    EXPECT_EQ(batch_in(command, *argument).value_or(0), static_cast<uint64_t>(row.before))
        << row.argument << " in " << row.command;
    EXPECT_EQ(join(with_batch(command, *argument, 32), " "), row.after) << row.argument;
  }
}

TEST(FitBatch, StandsInTheTextOfAShell) {
  struct Text {
    std::vector<std::string> command;
    int before;
    std::string after;  // of the text
  };
  const Text texts[] = {
      {{"bash", "-c", "cd x && python t.py --batch 4 -v"}, 4, "cd x && python t.py --batch 32 -v"},
      {{"/bin/sh", "-ec", "python t.py --batch=4;echo"}, 4, "python t.py --batch=32;echo"},
      {{"env", "A=1", "bash", "-o", "pipefail", "-c", "t --batch '4'"}, 4, "t --batch '32'"},
      {{"bash", "-c", "t --batch-size 4 --batch 8|tee o"}, 8, "t --batch-size 4 --batch 32|tee o"},
      {{"bash", "-c", "t --batch $B"}, 0, "t --batch 32"},
      {{"bash", "-c", "t --batch"}, 0, "t --batch"},
      {{"bash", "-c", "t \\\n  --batch 4 \\\n -v"}, 4, "t \\\n  --batch 32 \\\n -v"},
      {{"bash", "-c", "t \\\n--batch \\\n 4\\\n -v"}, 4, "t \\\n--batch \\\n 32\\\n -v"},
      {{"bash", "-c", "t --batch\\\n 4"}, 4, "t --batch\\\n 32"},
      {{"bash", "-c", "t --batch\n8 x"}, 0, "t --batch\n8 x"},
      {{"srun", "-p", "gpu", "nice", "-n", "5", "sh", "-c", "t --batch 4"}, 4, "t --batch 32"},
      {{"torchrun", "--no-python", "bash", "-c", "t --batch 4"}, 4, "t --batch 32"},
      {{"bash", "-c", "t --batch $(cat n) -v"}, 0, "t --batch 32 -v"},
      {{"bash", "-c", "t --batch=$((2 * (1 + 3)));echo"}, 0, "t --batch=32;echo"},
      {{"bash", "-c", "t --batch `cat n`|tee o"}, 0, "t --batch 32|tee o"},
      {{"bash", "-c", "t --batch ${B:-4} -v"}, 0, "t --batch 32 -v"},
  };
  const Result<BatchArgument> argument = parse_batch_argument("--batch {}");
  ASSERT_TRUE(argument);
  for (const Text& text : texts) {
    const std::string& said = text.command.back();
    EXPECT_EQ(shell_text(text.command), text.command.size() - 1) << said;
    EXPECT_EQ(batch_in(text.command, *argument).value_or(0), static_cast<uint64_t>(text.before))
        << said;
    const std::vector<std::string> other = with_batch(text.command, *argument, 32);
    EXPECT_EQ(other[text.command.size() - 1], text.after);
    EXPECT_EQ(takes_appended(text.command, *argument), other.size() == text.command.size()) << said;
  }
  EXPECT_EQ(shell_text({"python", "-c", "import t"}), std::nullopt);
  EXPECT_EQ(shell_text({"bash", "run.sh", "-c", "x"}), std::nullopt);
  EXPECT_EQ(shell_text({"bash", "run.sh", "sh", "-c", "x"}), std::nullopt);
  EXPECT_EQ(shell_text({"./run.sh", "sh", "-c", "x"}), std::nullopt);
  EXPECT_EQ(shell_text({"/v/bin/python3.12", "-m", "t", "--mode", "sh", "-c", "x"}), std::nullopt);
  EXPECT_EQ(shell_text({"torchrun", "t.py", "--mode", "sh", "-c", "x"}), std::nullopt);
  EXPECT_TRUE(takes_appended({"python", "t.py", "--mode", "sh", "-c", "x"}, *argument));
  EXPECT_TRUE(takes_appended({"bash", "run.sh"}, *argument));
  EXPECT_TRUE(takes_appended({"bash", "-c", "t \"$@\"", "_"}, *argument));
}

// `bash -c 'echo "$@"' --batch 32` prints 32 alone.
TEST(FitBatch, IsNotTheNameOfTheShellThatHandsItOn) {
  const Result<BatchArgument> argument = parse_batch_argument("--batch {}");
  ASSERT_TRUE(argument);
  const auto appended = [&](std::vector<std::string> command) {
    return join(with_batch(std::move(command), *argument, 32), " ");
  };
  EXPECT_EQ(appended({"bash", "-c", "t $@"}), "bash -c t $@ sh --batch 32");
  EXPECT_EQ(appended({"bash", "-c", "t $@", "_"}), "bash -c t $@ _ --batch 32");
  EXPECT_EQ(appended({"bash", "run.sh"}), "bash run.sh --batch 32");
}

TEST(FitBatch, RefusesWhatHasNoPlaceOrNoName) {
  for (const char* text : {"", "{}", "--batch-size", "--batch-size 8", "{} --b", "--b {} {}",
                           "--b {} x", "--b x {}", "={}"})
    EXPECT_FALSE(parse_batch_argument(text)) << text;
}

}  // namespace batch_argument_test
}  // namespace cufit::commands
