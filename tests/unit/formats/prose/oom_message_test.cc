// SPDX-License-Identifier: Apache-2.0
// The examples are rendered from the templates of each release with numbers of our own.
#include "formats/prose/oom_message.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace oom_message_test {

constexpr uint64_t k_mib = 1 << 20, k_gib = 1 << 30;
uint64_t gib(double value) { return static_cast<uint64_t>(value * static_cast<double>(k_gib)); }

OomMessage one(std::string_view text) {
  const auto lines = plain_text_lines(text);
  const auto all = parse_oom_messages(lines);
  EXPECT_EQ(all.size(), 1u) << text;
  return all.empty() ? OomMessage() : all[0];
}

TEST(OomMessage, CachedUpTo13IsWhatIsNotUsed) {
  const OomMessage m =
      one("RuntimeError: CUDA out of memory. Tried to allocate 450.00 MiB (GPU 1; 10.00 GiB total "
          "capacity; 9.25 GiB already allocated; 8.00 MiB free; 512.00 MiB cached)");
  EXPECT_EQ(m.kind, "allocator");
  EXPECT_EQ(m.gpu, 1u);
  EXPECT_EQ(m.tried, 450 * k_mib);
  EXPECT_EQ(m.total, 10 * k_gib);
  EXPECT_EQ(m.allocated, gib(9.25));
  EXPECT_EQ(m.free, 8 * k_mib);
  EXPECT_EQ(m.reserved, gib(9.75));
}

TEST(OomMessage, ReservedInTotalSince14) {
  const OomMessage m = one(
      "x\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 MiB (GPU 0; "
      "8.00 "
      "GiB total capacity; 6.00 GiB allowed; 7.25 GiB already allocated; 0 bytes free; 7.50 GiB "
      "reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
      "max_split_size_mb to avoid fragmentation.");
  EXPECT_EQ(m.line, 2u);
  EXPECT_EQ(m.free, 0u);
  EXPECT_EQ(m.reserved, gib(7.5));
  EXPECT_EQ(m.allowed, 6 * k_gib);
}

TEST(OomMessage, SentencesSince21WithProcessesAndPools) {
  const OomMessage m = one(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 52.00 MiB. GPU 3 has a total "
      "capacty of 31.75 GiB of which 40.00 MiB is free. Process 101 has 1.25 GiB memory in use. "
      "Process 102 has 1.50 GiB memory in use. Including non-PyTorch memory, this process has "
      "13.00 "
      "GiB memory in use. Of the allocated memory 11.50 GiB is allocated by PyTorch, with 2.00 GiB "
      "allocated in private pools (e.g., CUDA Graphs), and 512.00 MiB is reserved by PyTorch but "
      "unallocated.");
  EXPECT_EQ(m.gpu, 3u);
  EXPECT_EQ(m.total, gib(31.75));
  EXPECT_EQ(m.own, 13 * k_gib);
  EXPECT_EQ(m.pools, 2 * k_gib);
  EXPECT_EQ(m.reserved, 12 * k_gib);
  ASSERT_EQ(m.others.size(), 2u);
  EXPECT_EQ(m.others[1].pid, 102u);
  EXPECT_EQ(m.others[1].bytes, gib(1.5));
}

TEST(OomMessage, WrappedByATerminal) {
  const OomMessage m =
      one("CUDA out of memory. Tried to allocate 2.00\nGiB (GPU 0; 23.50 GiB total\n   capacity; "
          "20.00 GiB "
          "already allocated; 1.00 GiB free; 21.00 GiB\nreserved in total by PyTorch)");
  EXPECT_EQ(m.tried, 2 * k_gib);
  EXPECT_EQ(m.total, gib(23.5));
  EXPECT_EQ(m.reserved, 21 * k_gib);
}

TEST(OomMessage, MallocAsync) {
  const OomMessage m =
      one("torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of "
          "memory)\n"
          "Currently allocated     : 9.50 GiB\nRequested               : 640.00 MiB\n"
          "Device limit            : 11.50 GiB\nFree (according to CUDA): 0 bytes\n"
          "PyTorch limit (set by user-supplied memory fraction)\n                        : "
          "17179869184.00 GiB");
  EXPECT_EQ(m.kind, "malloc_async");
  EXPECT_EQ(m.allocated, gib(9.5));
  EXPECT_EQ(m.tried, 640 * k_mib);
  EXPECT_EQ(m.total, gib(11.5));
  EXPECT_EQ(m.free, 0u);
  EXPECT_EQ(m.allowed, UINT64_MAX);
}

TEST(OomMessage, QuotaShimAndServingEngine) {
  const OomMessage hami = one(
      "[HAMI-core ERROR (pid:30 thread=1 allocator.c:53)]: Device 0 OOM 3171158016 / 3145728000");
  EXPECT_EQ(hami.kind, "hami");
  EXPECT_EQ(hami.own, 3171158016u);
  EXPECT_EQ(hami.allowed, 3145728000u);
  const OomMessage vllm =
      one("ValueError: Free memory on device cuda:0 (10.50/79.00 GiB) on startup is less than "
          "desired GPU "
          "memory utilization (0.9, 71.10 GiB). Decrease");
  EXPECT_EQ(vllm.kind, "vllm");
  EXPECT_EQ(vllm.free, gib(10.5));
  EXPECT_EQ(vllm.total, 79 * k_gib);
}

TEST(OomMessage, ProseWithNumbers) {
  const OomMessage m = one("(torch reserved ~113 GiB, allocated ~57 GiB, request 1.5 GiB)");
  EXPECT_EQ(m.kind, "prose");
  EXPECT_EQ(m.reserved, 113 * k_gib);
  EXPECT_EQ(m.allocated, 57 * k_gib);
  EXPECT_EQ(m.tried, gib(1.5));
}

TEST(OomMessage, SizesSaturateAndNonsenseIsNone) {
  EXPECT_EQ(parse_size("17179869184.00", "GiB"), UINT64_MAX);
  EXPECT_EQ(parse_size("1.5", "KiB"), 1536u);
  EXPECT_EQ(parse_size("20", "bytes"), 20u);
  EXPECT_EQ(parse_size("512", "MB"), 512 * k_mib);
  EXPECT_EQ(parse_size("", "GiB"), std::nullopt);
  EXPECT_EQ(parse_size("3", "apples"), std::nullopt);
  EXPECT_TRUE(parse_oom_messages(plain_text_lines("Tried to allocate nothing\nEpoch 1\n")).empty());
}

TEST(OomMessage, ManyMessagesAreBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "Tried to allocate 2.00 MiB (GPU 0; 1.00 GiB total capacity; 1 bytes free)\n";
  EXPECT_EQ(parse_oom_messages(plain_text_lines(text)).size(), 16u);
}

TEST(OomMessage, LosesTheAdviceThatEveryMessageEndsIn) {
  EXPECT_EQ(
      without_hint("8.10 GiB reserved in total by PyTorch) If reserved memory is >> allocated "
                   "memory try setting max_split_size_mb to avoid fragmentation.  See "
                   "documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF (epoch 3)"),
      "8.10 GiB reserved in total by PyTorch)  (epoch 3)");
  EXPECT_EQ(without_hint("unallocated. If reserved but unallocated memory is large try set"),
            "unallocated. ");
  EXPECT_EQ(without_hint("fragmentation is bad"), "fragmentation is bad");
}

}  // namespace oom_message_test
}  // namespace cufit::formats
