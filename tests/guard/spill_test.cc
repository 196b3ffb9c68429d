// SPDX-License-Identifier: Apache-2.0
// `--spill SIZE`: host memory in the GPU's address space as the answer to a second refusal, and to nothing else.
#include "guarded.h"

namespace cufit::test {
namespace {

const std::string k_start = "init\ncontext 0\n";
const std::string k_started = "init: 0\ncontext 0: 0\n";

class GuardSpill : public Guarded {
 protected:
  void allow(uint64_t mib) { environment.push_back("CUFIT_SPILL=" + std::to_string(mib * k_mib)); }
  // Of the events of the one process.
  size_t events(formats::RingWhat what) const {
    size_t out = 0;
    for (const formats::GpuRing& ring : rings())
      for (const formats::RingEvent& event : ring.events) out += event.what == what;
    return out;
  }
};

// torch asks, frees its cache, and asks for the same again.
TEST_F(GuardSpill, TheSecondRefusalOfOneSizeIsAnsweredWithHostMemory) {
  allow(1000);
  const Ran ran = run(k_start + "alloc a 600M\nalloc b 400M\nalloc b 400M\ninfo\nfree b\ninfo");
  EXPECT_EQ(ran.out, k_started +
                         "alloc a 600M: 0\nalloc b 400M: 2\nalloc b 400M: 0\n"
                         "info: 0 free 124 total 1024\nfree b: 0\ninfo: 0 free 124 total 1024\n");
  EXPECT_EQ(domain_now().devices[0].refusals, 1u);
  EXPECT_EQ(domain_now().devices[0].spilled_bytes, 400 * k_mib);
  EXPECT_EQ(events(formats::RingWhat::spilled), 1u);
  EXPECT_EQ(card_peak(), 900 * k_mib);
}

TEST_F(GuardSpill, WithoutItEveryRefusalIsOne) {
  const Ran ran = run(k_start + "alloc a 600M\nalloc b 400M\nalloc b 400M");
  EXPECT_EQ(ran.out, k_started + "alloc a 600M: 0\nalloc b 400M: 2\nalloc b 400M: 2\n");
}

TEST_F(GuardSpill, AnotherSizeIsAFirstRefusal) {
  allow(1000);
  const Ran ran = run(k_start + "alloc a 600M\nalloc b 400M\nalloc c 300M\nalloc c 300M");
  EXPECT_EQ(ran.out,
            k_started + "alloc a 600M: 0\nalloc b 400M: 2\nalloc c 300M: 2\nalloc c 300M: 0\n");
}

TEST_F(GuardSpill, NeverMoreThanItsSizeAndWhatIsFreedMayBeTakenAgain) {
  allow(500);
  const Ran ran = run(k_start +
                      "alloc a 600M\nalloc b 400M\nalloc b 400M\nalloc c 400M\nalloc c 400M\n"
                      "free b\nalloc c 400M\nalloc d 400M\nalloc d 400M");
  EXPECT_EQ(ran.out, k_started +
                         "alloc a 600M: 0\nalloc b 400M: 2\nalloc b 400M: 0\nalloc c 400M: 2\n"
                         "alloc c 400M: 2\nfree b: 0\nalloc c 400M: 0\nalloc d 400M: 2\n"
                         "alloc d 400M: 2\n");
}

// torch's small segments all have one size: each of them is refused once, so that torch frees its cache.
TEST_F(GuardSpill, EachRequestIsRefusedOnceFirst) {
  allow(1000);
  const Ran ran = run(k_start +
                      "alloc a 600M\nalloc b 200M\nalloc b 200M\nalloc c 200M\nalloc c 200M\n"
                      "free a\nalloc d 200M\nalloc a 400M\nalloc e 200M\n");
  EXPECT_EQ(ran.out, k_started +
                         "alloc a 600M: 0\nalloc b 200M: 2\nalloc b 200M: 0\nalloc c 200M: 2\n"
                         "alloc c 200M: 0\nfree a: 0\nalloc d 200M: 0\nalloc a 400M: 0\n"
                         "alloc e 200M: 2\n");
}

// The pages of an ended context are the host's again, and so is their part of SIZE.
TEST_F(GuardSpill, ItsContextTakesItAlong) {
  allow(500);
  const Ran ran = run(k_start +
                      "alloc a 600M\nalloc b 400M\nalloc b 400M\nreset 0\ncontext 0\nalloc a 600M\n"
                      "alloc b 400M\nalloc b 400M");
  EXPECT_NE(ran.out.find("context 0: 0\nalloc a 600M: 0\nalloc b 400M: 2\nalloc b 400M: 0\n",
                         k_started.size()),
            std::string::npos)
      << ran.out;
}

// The card is full though the quota is not: the same.
TEST_F(GuardSpill, ARefusalOfTheDriverCountsToo) {
  describe("", "memory = 1073741824");
  limit(4096);
  allow(1000);
  const Ran ran = run(k_start + "alloc a 600M\nalloc b 400M\nalloc b 400M");
  EXPECT_EQ(ran.out, k_started + "alloc a 600M: 0\nalloc b 400M: 2\nalloc b 400M: 0\n");
}

TEST_F(GuardSpill, SmallBlocksHandlesAndPoolsAreNotSpilled) {
  allow(1000);
  const Ran ran = run(k_start +
                      "alloc a 716M\nalloc b 10M\nalloc b 10M\nvmm c 0 100M\nvmm c 0 100M\n"
                      "async d 100M\nasync d 100M\npitch e 100M\npitch e 100M");
  EXPECT_EQ(ran.out.find(": 0", (k_started + "alloc a 716M: 0").size()), std::string::npos)
      << ran.out;
  EXPECT_EQ(domain_now().devices[0].spilled_bytes, 0u);
}

TEST_F(GuardSpill, NothingWhileAStreamIsBeingCaptured) {
  allow(1000);
  const Ran ran = run(k_start + "stream s\nalloc a 600M\ncapture s\nalloc b 400M\nalloc b 400M");
  EXPECT_NE(ran.out.find("alloc b 400M: 2\nalloc b 400M: 2\n"), std::string::npos) << ran.out;
}

TEST_F(GuardSpill, AnOlderDriverCannotAndAFilterFallsBackToTheWholeHost) {
  allow(1000);
  describe("cuda = 12010");
  const std::string script = k_start + "alloc a 600M\nalloc b 400M\nalloc b 400M";
  EXPECT_NE(run(script).out.find("alloc b 400M: 2\nalloc b 400M: 2\n"), std::string::npos);
  describe("cuda = 12020");
  EXPECT_NE(run(script).out.find("alloc b 400M: 2\nalloc b 400M: 0\n"), std::string::npos);
  describe("cuda = 12020\nnuma_forbidden = 1");
  EXPECT_NE(run(script).out.find("alloc b 400M: 2\nalloc b 400M: 2\n"), std::string::npos);
  describe("cuda = 13000\nnuma_forbidden = 1");
  EXPECT_NE(run(script).out.find("alloc b 400M: 2\nalloc b 400M: 0\n"), std::string::npos);
}

// More than the host has: a GPU that is full must not become a host that kills.
TEST_F(GuardSpill, TheHostKeepsATenthOfItsMemory) {
  describe("", "memory = 70368744177664");
  limit(1024);
  allow(uint64_t{64} << 20);
  const Ran ran = run(k_start + "alloc a 60000000M\nalloc a 60000000M");
  EXPECT_EQ(ran.out, k_started + "alloc a 60000000M: 2\nalloc a 60000000M: 2\n");
}

}  // namespace
}  // namespace cufit::test
