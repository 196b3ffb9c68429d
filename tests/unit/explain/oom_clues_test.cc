// SPDX-License-Identifier: Apache-2.0
// What numbers decide. Each text is one message; the clues are by hand from its numbers.
#include "explain/oom_clues.h"

#include <gtest/gtest.h>

#include <set>

namespace cufit::explain {
namespace oom_clues_test {

std::set<std::string> clues(std::string_view text) {
  const auto lines = formats::plain_text_lines(text);
  const auto message = main_message(formats::parse_oom_messages(lines));
  std::set<std::string> out;
  if (!message) return out;
  for (const ComputedClue& clue : oom_clues(*message)) out.insert(clue.id);
  return out;
}

std::string message(const std::string& tried, const std::string& total,
                    const std::string& allocated, const std::string& free,
                    const std::string& reserved) {
  return "CUDA out of memory. Tried to allocate " + tried + " (GPU 0; " + total +
         " total capacity; " + allocated + " already allocated; " + free + " free; " + reserved +
         " reserved in total by PyTorch)";
}

using Set = std::set<std::string>;

TEST(OomClues, FullOfItsOwnTensors) {
  EXPECT_EQ(
      clues(message("20.00 MiB", "24.00 GiB", "22.00 GiB", "10.00 MiB", "22.01 GiB")),
      (Set{"oom_message", "oom_tried_small", "oom_no_outside", "oom_own_full", "oom_no_slack"}));
}

TEST(OomClues, SlackThatWouldHaveDone) {
  EXPECT_EQ(clues(message("2.00 GiB", "24.00 GiB", "15.00 GiB", "100.00 MiB", "22.50 GiB")),
            (Set{"oom_message", "oom_no_outside", "oom_own_full", "oom_reserved_slack",
                 "oom_slack_large"}));
}

TEST(OomClues, SlackOfSeveralRequestsIsLarge) {
  EXPECT_TRUE(clues(message("1.50 GiB", "79.15 GiB", "58.31 GiB", "300.00 MiB", "77.52 GiB"))
                  .count("oom_slack_large"));
  EXPECT_FALSE(clues(message("3.00 GiB", "24.00 GiB", "15.00 GiB", "100.00 MiB", "22.50 GiB"))
                   .count("oom_slack_large"))
      << "two and a half requests";
}

// 7.91 GiB less 5.71, less 0.89 free, leaves 1.3; the processes that are named hold 0.05 of it.
TEST(OomClues, WhatNoNamedProcessHoldsIsNotOthers) {
  const Set found = clues(
      "CUDA out of memory. Tried to allocate 3.49 GiB. GPU 0 has a total capacity of 7.91 GiB of "
      "which 909.25 MiB is free. Process 11 has 31.63 MiB memory in use. Process 12 has 20.77 MiB "
      "memory in use. Process 13 has 5.71 GiB memory in use. Of the allocated memory 5.36 GiB is "
      "allocated by PyTorch, and 218.56 MiB is reserved by PyTorch but unallocated.");
  EXPECT_TRUE(found.count("oom_no_outside"));
  EXPECT_FALSE(found.count("oom_outside_memory"));
}

TEST(OomClues, OthersThatHoldHalfOfTheCard) {
  const std::string text =
      "CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 23.65 GiB "
      "of which 11.31 MiB is free. Process 4242 has 14.12 GiB memory in use. Process 4243 has 9.50 "
      "GiB memory in use. Of the allocated memory 9.10 GiB is allocated by PyTorch";
  const Set without_reserve = clues(text),
            with_reserve = clues(text + ", and 110.00 MiB is reserved by PyTorch but unallocated.");
  for (const Set& found : {without_reserve, with_reserve}) {
    EXPECT_TRUE(found.count("oom_outside_memory"));
    EXPECT_TRUE(found.count("oom_outside_half")) << "the entry of 9.50 GiB is this process";
  }
  EXPECT_FALSE(clues(message("20.00 MiB", "8.00 GiB", "2.75 GiB", "25.00 MiB", "6.00 GiB"))
                   .count("oom_outside_half"));
}

TEST(OomClues, HeldByOthers) {
  EXPECT_EQ(clues(message("20.00 MiB", "8.00 GiB", "2.75 GiB", "25.00 MiB", "3.00 GiB")),
            (Set{"oom_message", "oom_tried_small", "oom_outside_memory", "oom_reserved_slack"}))
      << "256 MiB of slack would have served 20 MiB as well";
}

TEST(OomClues, LargerThanTheCard) {
  EXPECT_EQ(clues(message("124.00 GiB", "80.00 GiB", "20.00 GiB", "58.00 GiB", "21.00 GiB")),
            (Set{"oom_message", "oom_tried_large", "oom_tried_over_capacity", "oom_no_outside",
                 "oom_no_slack"}));
  EXPECT_TRUE(clues(message("67109892.01 GiB", "24.00 GiB", "6.00 GiB", "17.00 GiB", "6.10 GiB"))
                  .count("oom_tried_absurd"));
  const std::string bare = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ";
  EXPECT_TRUE(clues(bare + "20209.02 GiB.").count("oom_tried_absurd"));
  EXPECT_FALSE(clues(bare + "2209.02 GiB.").count("oom_tried_absurd")) << "ten cards of 288 GB";
}

TEST(OomClues, TheHostPidOfAContainerIsThisProcess) {
  EXPECT_EQ(
      clues("CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 16.00 "
            "GiB of which 500.00 MiB is free. Process 562167 has 15.25 GiB memory in use. Of the "
            "allocated memory 13.75 GiB is allocated by PyTorch, and 736.00 MiB is reserved by "
            "PyTorch but unallocated."),
      (Set{"oom_message", "oom_no_outside", "oom_own_full"}))
      << "slack of 736 MiB covers 546 MiB but is under a twentieth of the reserve";
}

TEST(OomClues, SpilledToSystemMemory) {
  const Set found = clues(
      "CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total capacty of 16.00 GiB of "
      "which 0 bytes is free. Including non-PyTorch memory, this process has 17179869184.00 GiB "
      "memory in use. Of the allocated memory 30.00 GiB is allocated by PyTorch, and 0 bytes is "
      "reserved by PyTorch but unallocated.");
  EXPECT_TRUE(found.count("oom_over_capacity"));
  EXPECT_FALSE(found.count("oom_outside_memory"));
}

TEST(OomClues, ManyEqualProcesses) {
  std::string text =
      "CUDA out of memory. Tried to allocate 52.00 MiB. GPU 0 has a total capacity of 32.00 GiB of "
      "which "
      "40.00 MiB is free. ";
  for (int i = 0; i < 7; ++i)
    text += "Process 10" + std::to_string(i) + " has 1.20 GiB memory in use. ";
  text +=
      "Including non-PyTorch memory, this process has 23.00 GiB memory in use. Of the allocated "
      "memory "
      "21.00 GiB is allocated by PyTorch, and 600.00 MiB is reserved by PyTorch but unallocated.";
  const Set found = clues(text);
  EXPECT_TRUE(found.count("oom_many_equal_processes"));
  EXPECT_TRUE(found.count("oom_outside_memory"));
}

TEST(OomClues, MallocAsyncKnowsNoReserve) {
  const Set found = clues(
      "Currently allocated     : 1.50 GiB\nRequested               : 25.00 MiB\n"
      "Device limit            : 6.00 GiB\nFree (according to CUDA): 3.50 GiB\n");
  EXPECT_TRUE(found.count("oom_free_enough"));
  EXPECT_FALSE(found.count("oom_no_slack"));
}

TEST(OomClues, LimitOfTheProcess) {
  const std::string said =
      "CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 47.54 GiB total capacity; 23.68 GiB "
      "already allocated; 23.44 GiB free; ";
  const std::string reserved = "23.77 GiB reserved in total by PyTorch)";
  EXPECT_TRUE(clues(said + "23.77 GiB allowed; " + reserved).count("oom_limit_reached"));
  EXPECT_FALSE(clues(said + "30.00 GiB allowed; " + reserved).count("oom_limit_reached"));
  // Half of the card, whether the message names the limit or not.
  EXPECT_TRUE(clues(said + reserved).count("oom_limit_reached"));
  EXPECT_FALSE(clues(said + "22.77 GiB reserved in total by PyTorch)").count("oom_limit_reached"));
}

TEST(OomClues, MallocAsyncPrintsTheWholeCardAsLimit) {
  const std::string said =
      "Currently allocated     : 9.50 GiB\nRequested               : 2.00 MiB\n"
      "Device limit            : 39.39 GiB\nFree (according to CUDA): 3.06 MiB\n"
      "PyTorch limit (set by user-supplied memory fraction)\n                        : ";
  EXPECT_FALSE(clues(said + "39.39 GiB").count("oom_allowed_limit"));
  EXPECT_TRUE(clues(said + "10.00 GiB").count("oom_allowed_limit"));
}

TEST(OomClues, ARequestThatNoCardServes) {
  EXPECT_TRUE(
      clues("CUDA out of memory. Tried to allocate 1263.35 GiB.").count("oom_tried_over_capacity"));
  EXPECT_FALSE(
      clues("CUDA out of memory. Tried to allocate 260.00 GiB.").count("oom_tried_over_capacity"));
  // It says more than another message of the same text, whatever numbers that has.
  EXPECT_TRUE(clues("CUDA out of memory. Tried to allocate 1024.00 GiB.\n" +
                    message("20.00 MiB", "24.00 GiB", "22.00 GiB", "10.00 MiB", "22.01 GiB"))
                  .count("oom_tried_over_capacity"));
}

TEST(OomClues, PlentyThatIsFree) {
  EXPECT_TRUE(clues(message("108.00 MiB", "24.00 GiB", "7.00 GiB", "15.34 GiB", "7.50 GiB"))
                  .count("oom_free_plenty"));
  // Less than a tenth of the card, less than four requests.
  EXPECT_FALSE(clues(message("108.00 MiB", "24.00 GiB", "20.00 GiB", "2.30 GiB", "20.50 GiB"))
                   .count("oom_free_plenty"));
  EXPECT_FALSE(clues(message("4.00 GiB", "24.00 GiB", "7.00 GiB", "15.34 GiB", "7.50 GiB"))
                   .count("oom_free_plenty"));
}

TEST(OomClues, PrivatePools) {
  const auto text = [](const char* pools) {
    return std::string(
               "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
               "of 31.51 GiB of which 196.06 MiB is free. Including non-PyTorch memory, "
               "this process has 31.31 GiB memory in use. Of the allocated memory 28.34 "
               "GiB is allocated by PyTorch, with ") +
           pools +
           " allocated in private pools (e.g., CUDA Graphs), and 2.63 GiB is reserved by PyTorch "
           "but unallocated.";
  };
  EXPECT_TRUE(clues(text("19.83 GiB")).count("oom_pools_half"));
  EXPECT_FALSE(clues(text("12.10 GiB")).count("oom_pools_half"));
  EXPECT_TRUE(clues(text("12.10 GiB")).count("oom_private_pools"));
}

}  // namespace oom_clues_test
}  // namespace cufit::explain
