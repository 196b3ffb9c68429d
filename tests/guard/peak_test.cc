// SPDX-License-Identifier: Apache-2.0
// The high water of domain and ring: what programs had at once, without what they asked for and did not get.
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "guarded.h"

namespace cufit::test {
namespace {

const std::string k_start = "init\ncontext 0\n";

class GuardPeak : public Guarded {
 protected:
  uint64_t peak_mib() const { return domain_now().devices.at(0).peak_bytes / k_mib; }
  uint64_t ring_peak_mib() const { return rings().at(0).devices.at(0).peak_bytes / k_mib; }
};

// The pool grows by 64 MiB for 10: 1064 of 1024, given back at once and refused.
TEST_F(GuardPeak, APoolThatIsTakenBack) {
  describe("", "pool_step = 67108864");
  const Ran ran = run(k_start + "alloc a 700M\nasync b 10M 0\ninfo");
  EXPECT_EQ(
      ran.out,
      "init: 0\ncontext 0: 0\nalloc a 700M: 0\nasync b 10M 0: 2\ninfo: 0 free 24 total 1024\n");
  EXPECT_EQ(peak_mib(), 1000u);
  EXPECT_EQ(ring_peak_mib(), 1000u);
  EXPECT_EQ(used_mib(), 1000u);
}

TEST_F(GuardPeak, APoolThatStays) {
  describe("", "pool_step = 67108864");
  run(k_start + "alloc a 600M\nasync b 10M 0");
  EXPECT_EQ(peak_mib(), 964u);
  EXPECT_EQ(ring_peak_mib(), 964u);
}

// NCCL's kernels are 350 MiB on an H200. They are found before the limit is passed, not after it.
TEST_F(GuardPeak, WhatTheDriverTakesUnseen) {
  domain.nvml_own_process = true;
  write_domain();
  const Ran ran =
      run(k_start + "alloc a 400M\nkernels 200M\nsleep 0.15\nalloc b 100M\nalloc c 100M");
  EXPECT_EQ(ran.out,
            "init: 0\ncontext 0: 0\nalloc a 400M: 0\nkernels 200M: 0\nalloc b 100M: 0\nalloc c "
            "100M: 2\n");
  EXPECT_EQ(peak_mib(), 1000u);
}

// Within the limit, and the card is full.
TEST_F(GuardPeak, WhatTheDriverRefuses) {
  limit(4000);
  describe("", "memory = 1073741824");
  const Ran ran = run(k_start + "alloc a 500M\nalloc b 900M\nvmm c 0 900M\nasync d 900M 0");
  EXPECT_EQ(ran.out,
            "init: 0\ncontext 0: 0\nalloc a 500M: 0\nalloc b 900M: 2\nvmm c 0 900M: 2\nasync d "
            "900M 0: 2\n");
  EXPECT_EQ(peak_mib(), 800u);
  EXPECT_EQ(ring_peak_mib(), 800u);
}

// The page of a small block is given back with it.
TEST_F(GuardPeak, ASmallBlockThatTheDriverRefuses) {
  limit(4000);
  describe("", "memory = 838860800");
  const Ran ran = run(k_start + "alloc a 500M\nalloc b 600K");
  EXPECT_EQ(ran.out, "init: 0\ncontext 0: 0\nalloc a 500M: 0\nalloc b 600K: 2\n");
  EXPECT_EQ(peak_mib(), 800u);
  EXPECT_EQ(ring_peak_mib(), 800u);
}

// One process waits in the driver for what it may get; another's grant does not count that.
TEST_F(GuardPeak, WhatAnotherProcessAsksFor) {
  describe("hang = cuMemAlloc_v2");
  const pid_t child = start(k_start + "alloc a 200M");
  for (int i = 0; i < 2000 && used_mib() < 500; ++i) usleep(5000);
  EXPECT_EQ(used_mib(), 500u);
  EXPECT_EQ(peak_mib(), 300u);
  describe("");
  run(k_start + "alloc a 100M");
  EXPECT_EQ(peak_mib(), 700u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Small blocks share pages: the page of one that fails stays with those that lie in it.
TEST_F(GuardPeak, SmallBlocksAndArrays) {
  run(k_start + "many 64 600K\narray b 3000000\nalloc c 100M\nfree c\nalloc c 200M");
  const uint64_t peak = peak_mib();
  EXPECT_EQ(peak, used_mib());
  EXPECT_EQ(ring_peak_mib(), peak);
}

TEST_F(GuardPeak, ProcessesThatAskForTooMuchAllTheTime) {
  limit(1000, 0);
  describe("", "context = 0");
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i)
    children.push_back(start(k_start + "hold " + std::to_string(60 + i % 50) + "M 1"));
  for (pid_t child : children) waitpid(child, nullptr, 0);
  EXPECT_GT(domain_now().devices.at(0).refusals, 0u);
  EXPECT_LE(peak_mib(), 1000u);
  EXPECT_LE(peak_mib(), card_peak() / k_mib);
}

}  // namespace
}  // namespace cufit::test
