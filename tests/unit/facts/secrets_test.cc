// SPDX-License-Identifier: Apache-2.0
#include "facts/secrets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cufit::facts {
namespace secrets_test {

// "|" stands for the zero byte between words.
std::string shown(std::string line) {
  std::replace(line.begin(), line.end(), '|', '\0');
  return shown_command(line);
}

TEST(ShownCommand, HidesWhatIsNamedASecret) {
  const std::pair<const char*, const char*> cases[] = {
      {"python|train.py|--token|abc|--lr=1", "python train.py --token *** --lr=1"},
      {"python|train.py|--hf-token=abc", "python train.py --hf-token=***"},
      {"x|--password|my pass word|y", "x --password *** y"},
      {"x|--password=my pass", "x --password=*** pass"},
      {"env|WANDB_API_KEY=abc|DB_PWD=1|python", "env WANDB_API_KEY=*** DB_PWD=*** python"},
      {"x|trainer.logger.api_key=abc", "x trainer.logger.api_key=***"},
      {"x|--api_key|-starts-with-dash", "x --api_key ***"},
      // In a line of a shell, in code.
      {"sh|-c|export HF_TOKEN=abc; python t.py --token abc --lr 1",
       "sh -c export HF_TOKEN=***; python t.py --token *** --lr 1"},
      {"python|-c|os.environ['HF_TOKEN'] = 'abc def'; run()",
       "python -c os.environ['HF_TOKEN'] = ***; run()"},
      {"curl|-H|Authorization: Bearer abc.def|u", "curl -H Authorization: Bearer *** u"},
      {"x|{\"api_key\": \"abc\", \"n\": 1}", "x {\"api_key\": ***, \"n\": 1}"},
  };
  for (const auto& [line, wanted] : cases) EXPECT_EQ(shown(line), wanted) << line;
}

TEST(ShownCommand, HidesTokensWithoutAName) {
  EXPECT_EQ(shown("login|hf_abcdefghijklmnopqrstuvwx|sk-abcdefghijklmnopqrstuvwx"),
            "login *** ***");
  EXPECT_EQ(shown("git|clone|https://me:pw@host/x.git"), "git clone https://user@host/x.git");
  EXPECT_EQ(shown("x|https://h/?a=1&sig=abc&b=2"), "x https://h/?a=1&sig=***&b=2");
}

TEST(ShownCommand, LeavesTheRestAlone) {
  const char* const lines[] = {
      "python|train.py|--max-tokens|2048|--tokenizer=gpt2|--pad-token|<pad>|--eos_token_id=0",
      "python|-m|torch.distributed.run|--nproc_per_node=8|train.py|--config|a:b=c",
      "x|PWD=/home/me|--key-dim=64|--auth|none|monkey=1",
      "x|--use-auth-token|--other|1",
      "/opt/my tools/python|train.py",
  };
  for (const std::string line : lines) {
    std::string same = line;
    std::replace(same.begin(), same.end(), '|', ' ');
    EXPECT_EQ(shown(line), same);
  }
  EXPECT_EQ(shown("a||b||"), "a  b");  // an empty word is one
  EXPECT_EQ(shown(""), "");
}

}  // namespace secrets_test
}  // namespace cufit::facts
