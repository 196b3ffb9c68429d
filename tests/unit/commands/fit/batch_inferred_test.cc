// SPDX-License-Identifier: Apache-2.0
// Which option a command's batch size is, where nobody said it.
#include "commands/fit/batch_inferred.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "commands/fit/shell_words.h"
#include "support/fake_root.h"

namespace cufit::commands {
namespace batch_inferred_test {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string_view word : split(text, ' ')) out.emplace_back(word);
  return out;
}

// "<option> <number>[ in <file>]", or "-".
std::string inferred(const test::FakeRoot& root, const std::vector<std::string>& command) {
  const auto found = inferred_batch(root.host(), command);
  if (!found) return "-";
  return found->argument.name + " " + std::to_string(found->batch) +
         (found->file.empty() ? "" : " in " + found->file);
}

TEST(FitBatchInferred, ByTheNameOfAnOption) {
  const std::pair<const char*, const char*> rows[] = {
      {"python t.py", "-"},
      {"python t.py --train_batch_size 2 --lr 1", "--train_batch_size 2"},
      {"python t.py --per_device_train_batch_size=8", "--per_device_train_batch_size 8"},
      {"python t.py --bs 4 --eval-batch-size 2 --vae_batch_size 1", "--bs 4"},
      {"python t.py --batchSize 4 --valBatchSize 8", "--batchSize 4"},
      {"python t.py -b 16", "-b 16"},
      {"python t.py train.batch_size=4 val.batch_size=2", "train.batch_size 4"},
      {"env BATCH_SIZE=4 python t.py", "BATCH_SIZE 4"},
      {"python t.py --micro_batch_size 4 --global_batch_size 64", "--micro_batch_size 4"},
      {"python t.py --batch_size auto", "-"},
      {"python t.py --batch_size 0", "-"},
      {"python t.py --batch_size 4 --train_batch_size 8", "-"},
      {"python t.py --log_every_batch 4 --batches 8 --patch_size 16", "-"},
      {"python t.py --url http://x?batch_size=4", "-"},
  };
  for (const auto& [command, expected] : rows)
    EXPECT_EQ(inferred({}, words(command)), expected) << command;
  EXPECT_EQ(inferred({}, {"bash", "-c", "B=1 python t.py \\\n --bs 8;echo"}), "--bs 8");
}

TEST(FitBatchInferred, InAFileThatTheCommandNames) {
  test::FakeRoot root;
  root.file("/gui.toml", "train_batch_size = 2\nvae_batch_size = 4\n");
  root.file("/two.yaml", "data:\n  batch_size: 2\nmore:\n  batch_size: 4\n");
  root.file("/same.json", "{\n  \"batch-size\": 2,\n  \"batch-size\": 2\n}\n");
  EXPECT_EQ(inferred(root, words("python t.py --config_file /gui")),
            "--train_batch_size 2 in /gui.toml");
  EXPECT_EQ(inferred(root, words("python t.py /two.yaml")), "-");
  EXPECT_EQ(inferred(root, words("python t.py /same.json")), "--batch-size 2 in /same.json");
  EXPECT_EQ(inferred(root, words("python t.py --config_file /gui --bs 4")), "--bs 4");
  // There the option would come to the shell.
  EXPECT_EQ(inferred(root, {"sh", "-c", "python t.py --config_file /gui.toml"}), "-");
  EXPECT_EQ(inferred(root, {"sh", "-c", "python t.py --config_file=/gui.toml \"$@\"", "_"}),
            "--train_batch_size 2 in /gui.toml");
}

TEST(FitBatchInferred, InAScriptOfAShell) {
  test::FakeRoot root;
  root.file("/x/train.sh",
            "#!/usr/bin/env bash\ncd \"${BASH_SOURCE[0]}\"\nbatch_size=2  # of one GPU\n"
            "python t.py --train_batch_size=$batch_size\n");
  root.file("/x/config.sh", "python t.py --config_file /gui.toml\n");
  root.file("/x/on.sh", "python t.py --config_file /gui.toml \"$@\"\n");
  root.file("/gui.toml", "train_batch_size = 2\n");
  const std::string text =
      "#!/usr/bin/env bash\ncd \"$0\"\nbatch_size=4  # of one GPU\n"
      "python t.py --train_batch_size=$batch_size\n";
  for (const char* command : {"bash /x/train.sh 7", "env A=1 bash -eu /x/train.sh 7", "/x/train.sh 7"}) {
    EXPECT_EQ(inferred(root, words(command)), "batch_size 2 in /x/train.sh") << command;
    const auto found = inferred_batch(root.host(), words(command));
    ASSERT_TRUE(found) << command;
    std::vector<std::string> changed = with_batch(found->command, found->argument, 4);
    ASSERT_GE(changed.size(), 5u);
    EXPECT_EQ(std::vector<std::string>(changed.end() - 5, changed.end()),
              (std::vector<std::string>{changed[changed.size() - 5], "-c", text, "/x/train.sh", "7"}));
  }
  EXPECT_EQ(inferred(root, words("bash /x/config.sh")), "-");
  EXPECT_EQ(inferred(root, words("bash /x/on.sh")), "--train_batch_size 2 in /gui.toml");
  for (const char* command : {"bash /x/none.sh", "python t.py bash /x/train.sh", "sbatch /x/train.sh",
                              "bash -s /x/train.sh", "bash"})
    EXPECT_EQ(script_as_text(root.host(), words(command)), std::nullopt) << command;
}

}  // namespace batch_inferred_test
}  // namespace cufit::commands
