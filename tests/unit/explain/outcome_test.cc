// SPDX-License-Identifier: Apache-2.0
#include "explain/outcome.h"

#include <gtest/gtest.h>

namespace cufit::explain {
namespace outcome_test {

Outcome read(std::string_view text) { return read_outcome(formats::plain_text_lines(text)); }

TEST(Outcome, FindsMessagesOfExceptionsAndNotTheirMention) {
  const Outcome out = read(
      "today: KeyError: 'x'\nexcept ValueError:\n> TypeError: x\n\"OSError: x\"\n"
      "torch.OutOfMemoryError: CUDA out of memory.\nKeyboardInterrupt\n");
  ASSERT_EQ(out.failures.size(), 2u);
  EXPECT_TRUE(out.failures[0].ordinary);
  EXPECT_EQ(out.failures[1].line, 5u);
  EXPECT_TRUE(out.failures[1].memory);
}

TEST(Outcome, KnowsAConsequence) {
  const Outcome out = read(
      "ImportError: x\n\nDuring handling of the above exception, another exception occurred:\n\n"
      "RuntimeError: y\n");
  ASSERT_EQ(out.failures.size(), 2u);
  EXPECT_TRUE(out.failures[1].chained);
}

TEST(Outcome, FindsSuccess) {
  for (std::string_view text :
       {"epoch 1 loss 0.3", "{'loss': 0.5, 'epoch': 1.0}", "[100%] Built target main", "done.",
        "INFO:     Uvicorn running on http://0.0.0.0:8000", "Successfully installed torch-2.4.0",
        "GPU 0: NVIDIA GeForce RTX 4090", ">>> torch.cuda.is_available()\nTrue"})
    EXPECT_EQ(read(text).successes.size(), 1u) << text;
  for (std::string_view text : {"loss=nan epoch 3", "GPU memory: full", "not done yet"})
    EXPECT_TRUE(read(text).successes.empty()) << text;
}

TEST(Outcome, KnowsFailuresOfSeveralGpus) {
  EXPECT_TRUE(
      read("NVRM: Xid (PCI:0000:3b:00): 31,\nNVRM: Xid (PCI:0000:af:00): 79,").several_gpus);
  EXPECT_FALSE(
      read("NVRM: Xid (PCI:0000:3b:00): 31,\nNVRM: Xid (PCI:0000:3b:00): 79,").several_gpus);
}

}  // namespace outcome_test
}  // namespace cufit::explain
