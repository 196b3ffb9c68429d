// SPDX-License-Identifier: Apache-2.0
// What is charged to whom, and what is given back when.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guarded.h"

namespace cufit::test {
namespace {

const std::string k_start = "init\ncontext 0\n";
const std::string k_started = "init: 0\ncontext 0: 0\n";

class GuardCharges : public Guarded {};

TEST_F(GuardCharges, MemoryOfAHandleLivesAsLongAsItsLastHold) {
  Ran ran =
      run(k_start +
          "vmm h 0 100M\nmap m h 100M\nretain k m\nclose h\ninfo\nunmap m\ninfo\nclose k\ninfo\n"
          "vmm h 0 100M\nmap m h 100M\nmap n h 100M\nclose h\nunmap m\ninfo\nunmap n\ninfo");
  EXPECT_EQ(ran.out,
            k_started +
                "vmm h 0 100M: 0\nmap m h 100M: 0\nretain k m: 0\nclose h: 0\n"
                "info: 0 free 624 total 1024\nunmap m: 0\ninfo: 0 free 624 total 1024\nclose k: 0\n"
                "info: 0 free 724 total 1024\nvmm h 0 100M: 0\nmap m h 100M: 0\nmap n h 100M: 0\n"
                "close h: 0\nunmap m: 0\ninfo: 0 free 624 total 1024\nunmap n: 0\n"
                "info: 0 free 724 total 1024\n");
}

TEST_F(GuardCharges, AFailedCallChargesNothing) {
  describe("fail.cuMemAlloc_v2 = 719\nfail.cuMemCreate = 801\nfail.cuMemAllocAsync = 2");
  Ran ran = run(k_start + "alloc a 100M\nvmm b 0 100M\nasync c 100M\ninfo");
  EXPECT_EQ(
      ran.out,
      k_started +
          "alloc a 100M: 719\nvmm b 0 100M: 801\nasync c 100M: 2\ninfo: 0 free 724 total 1024\n");
}

TEST_F(GuardCharges, AFreeThatFailsKeepsTheCharge) {
  describe("fail.cuMemFree_v2 = 700");
  Ran ran = run(k_start + "alloc a 100M\nfree a\ninfo\nreset 0\ncontext 0\ninfo");
  EXPECT_EQ(
      ran.out,
      k_started +
          "alloc a 100M: 0\nfree a: 700\ninfo: 0 free 624 total 1024\nreset 0: 0\ncontext 0: 0\n"
          "info: 0 free 724 total 1024\n");
}

// A block of cuMemAlloc may be given back in the order of a stream, too.
TEST_F(GuardCharges, ABlockThatIsFreedInTheOrderOfAStream) {
  for (const std::string route : {"dlsym", "gpa", "gpa_ptsz"}) {
    Ran ran =
        run(k_start + "alloc a 400M\nback a\ninfo\nalloc b 600M\nback b\nback b\ninfo", route);
    EXPECT_EQ(ran.out,
              k_started +
                  "alloc a 400M: 0\nback a: 0\ninfo: 0 free 724 total 1024\nalloc b 600M: 0\n"
                  "back b: 0\nback b: 0\ninfo: 0 free 724 total 1024\n")
        << route;
  }
  describe("fail.cuMemFreeAsync = 700");
  Ran ran = run(k_start + "alloc a 100M\nback a\ninfo");
  EXPECT_EQ(ran.out, k_started + "alloc a 100M: 0\nback a: 700\ninfo: 0 free 624 total 1024\n");
}

TEST_F(GuardCharges, SmallAllocationsShareThePagesOfTheDriver) {
  Ran ran =
      run(k_start + "alloc a 100K\ninfo\nmany 19 100K\ninfo\nmany 1 100K\ninfo\nfree a\ninfo");
  EXPECT_EQ(
      ran.out,
      k_started +
          "alloc a 100K: 0\ninfo: 0 free 722 total 1024\nmany 19 100K: 0 granted 19\n"
          "info: 0 free 722 total 1024\nmany 1 100K: 0 granted 1\ninfo: 0 free 720 total 1024\n"
          "free a: 0\ninfo: 0 free 722 total 1024\n");
}

TEST_F(GuardCharges, ManagedMemoryByPolicy) {
  EXPECT_EQ(run(k_start + "managed a 900M\ninfo\nfree a").out,
            k_started + "managed a 900M: 0\ninfo: 0 free 724 total 1024\nfree a: 0\n");
  domain.charge_managed = true;
  write_domain();
  EXPECT_EQ(run(k_start + "managed a 900M\nmanaged b 500M\ninfo\nfree b\ninfo").out,
            k_started +
                "managed a 900M: 2\nmanaged b 500M: 0\ninfo: 0 free 224 total 1024\nfree b: 0\n"
                "info: 0 free 724 total 1024\n");
}

TEST_F(GuardCharges, AContextBeforeItIsMade) {
  limit(200);
  EXPECT_EQ(run(k_start + "info").out, "init: 0\ncontext 0: 2\ninfo: 201\n");
  EXPECT_EQ(card_peak(), 0u);
  limit(700);
  EXPECT_EQ(
      run(k_start +
          "create 0 a\ncreate 0 b\ninfo\ndestroy a\ncurrent 0\ninfo\nrelease 0\ncontext 0")
          .out,
      k_started +
          "create 0 a: 0\ncreate 0 b: 2\ninfo: 0 free 100 total 700\ndestroy a: 0\ncurrent 0: 0\n"
          "info: 0 free 400 total 700\nrelease 0: 0\ncontext 0: 0\n");
}

// Driver 565 and later: what NVML says of this process, not the launcher's constant.
TEST_F(GuardCharges, AContextAsNvmlSays) {
  limit(1024, 50);
  domain.nvml_own_process = true;
  write_domain();
  EXPECT_EQ(run(k_start + "info\nalloc a 100M\ninfo\nnvml 0").out,
            k_started +
                "info: 0 free 724 total 1024\nalloc a 100M: 0\ninfo: 0 free 624 total 1024\n"
                "nvml 0: 0 free 624 total 1024 used 400\n");
  describe("no_process_memory = 1");
  EXPECT_EQ(run(k_start + "info").out, k_started + "info: 0 free 974 total 1024\n");
}

// What another thread asks for is charged and not there yet: what NVML says lacks it.
TEST_F(GuardCharges, NvmlIsNotAskedWhileACallIsUnderWay) {
  describe("hang = cuMemAlloc_v2");
  domain.nvml_own_process = true;
  write_domain();
  EXPECT_EQ(
      run(k_start + "behind 400M\nsleep 0.3\nvmm a 0 10M\ninfo\nvmm b 0 400M").out,
      k_started + "behind 400M: 0\nvmm a 0 10M: 0\ninfo: 0 free 314 total 1024\nvmm b 0 400M: 2\n");
}

TEST_F(GuardCharges, APoolIsWhatTheDriverSays) {
  describe("", "pool_step = 67108864");
  Ran ran =
      run(k_start + "async a 10M\ninfo\nasync b 10M\ninfo\nback a\nback b\nsync\ntrim 0\ninfo");
  EXPECT_EQ(ran.out, k_started +
                         "async a 10M: 0\ninfo: 0 free 660 total 1024\nasync b 10M: 0\ninfo: 0 "
                         "free 660 total 1024\n"
                         "back a: 0\nback b: 0\nsync: 0\ntrim 0: 0\ninfo: 0 free 724 total 1024\n");
}

// A pool that would grow by more than is left gives nothing.
TEST_F(GuardCharges, AStepThatPassesTheLimitIsTakenBack) {
  describe("", "pool_step = 134217728");
  Ran ran = run(k_start + "alloc a 700M\nasync b 10M\ninfo\nalloc c 20M");
  EXPECT_EQ(
      ran.out,
      k_started + "alloc a 700M: 0\nasync b 10M: 2\ninfo: 0 free 24 total 1024\nalloc c 20M: 0\n");
}

TEST_F(GuardCharges, ADestroyedPoolWithLivingBlocks) {
  Ran ran = run(k_start + "pool q 0\nfrom a 320M q\nunpool q\ninfo\nback a\nalloc b 700M\ninfo");
  EXPECT_EQ(
      ran.out,
      k_started +
          "pool q 0: 0\nfrom a 320M q: 0\nunpool q: 0\ninfo: 0 free 404 total 1024\nback a: 0\n"
          "alloc b 700M: 0\ninfo: 0 free 24 total 1024\n");
}

// Inside a capture nothing is allocated yet, and nothing is trimmed or taken back.
TEST_F(GuardCharges, ACaptureChargesNothing) {
  Ran ran = run(k_start + "stream s\ncapture s\nasync a 500M s\nasync b 800M s\ncaptured s\ninfo");
  EXPECT_EQ(ran.out,
            k_started +
                "stream s: 0\ncapture s: 0\nasync a 500M s: 0\nasync b 800M s: 2\ncaptured s: 0\n"
                "info: 0 free 724 total 1024\n");
}

TEST_F(GuardCharges, AGpuThatTheLauncherDidNotName) {
  domain.devices.clear();
  write_domain();
  EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 4096\n");
  domain.default_limit_bytes = 600 * k_mib;
  domain.default_context_bytes = 300 * k_mib;
  write_domain();
  EXPECT_EQ(run(k_start + "alloc a 400M\ninfo").out,
            k_started + "alloc a 400M: 2\ninfo: 0 free 300 total 600\n");
  EXPECT_EQ(domain_now().devices.at(0).uuid, "GPU-00000000-1111-2222-3333-444444444440");
  EXPECT_EQ(domain_now().devices.at(0).refusals, 1u);
}

// By its address where the launcher knew no UUID.
TEST_F(GuardCharges, AGpuByItsAddress) {
  domain.devices[0].uuid.clear();
  write_domain();
  EXPECT_EQ(run("init\ntotal 0\nnvml 0").out,
            "init: 0\ntotal 0: 0 1024\nnvml 0: 0 free 1024 total 1024 used 0\n");
}

// A limit above the card, and a card that others fill.
TEST_F(GuardCharges, TheCardIsTheOtherLimit) {
  limit(8192);
  EXPECT_EQ(
      run("init\ntotal 0\ncontext 0\ninfo\nalloc a 3900M").out,
      "init: 0\ntotal 0: 0 4096\ncontext 0: 0\ninfo: 0 free 3796 total 4096\nalloc a 3900M: 2\n");
  EXPECT_EQ(domain_now().devices.at(0).refusals, 0u);
  EXPECT_EQ(domain_now().devices.at(0).driver_refusals, 1u);
}

// A limit may be changed while programs run.
TEST_F(GuardCharges, TheLimitIsReadEachTime) {
  std::string script = k_start + "alloc a 600M\nsleep 3\nalloc b 300M\ninfo";
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pid_t child = start(script, "gpa", "guard_actor", pipe_ends[1]);
  close(pipe_ends[1]);
  for (int i = 0; i < 5000 && used_mib() < 900; ++i) usleep(1000);
  int file = open(path("domain").c_str(), O_WRONLY | O_CLOEXEC);
  uint64_t more = 2048 * k_mib;
  ASSERT_EQ(pwrite(file, &more, sizeof more, 1024 + 32), 8);
  close(file);
  std::string out;
  char piece[256];
  for (ssize_t got; (got = read(pipe_ends[0], piece, sizeof piece)) > 0;)
    out.append(piece, static_cast<size_t>(got));
  close(pipe_ends[0]);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(out, k_started + "alloc a 600M: 0\nalloc b 300M: 0\ninfo: 0 free 848 total 2048\n");
}

TEST_F(GuardCharges, AFileOfOthersLimitsNothing) {
  chmod(path("domain").c_str(), 0666);
  EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 4096\n");
  chmod(path("domain").c_str(), 0600);
  EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 1024\n");
}

TEST_F(GuardCharges, AFileOfAnotherKindLimitsNothing) {
  std::string bytes = read_bytes(path("domain"));
  for (size_t at : {0u, 8u, 12u, 16u, 20u}) {
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 0x7f);
    write_bytes(path("domain"), broken);
    EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 4096\n") << at;
  }
  write_bytes(path("domain"), bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 4096\n");
}

}  // namespace
}  // namespace cufit::test
