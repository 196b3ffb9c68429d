// SPDX-License-Identifier: Apache-2.0
// The black box of a process, read when the process is gone.
#include <csignal>
#include <cstddef>
#include <filesystem>

#include <sys/wait.h>

#include "base/abi/gpu_ring.h"
#include "guarded.h"

namespace cufit::test {
namespace {

using formats::GpuRing;
using formats::RingEvent;
using formats::RingKind;
using formats::RingWhat;

const std::string k_start = "init\ncontext 0\n";

class GuardRing : public Guarded {};

const RingEvent* find(const GpuRing& ring, RingKind kind, RingWhat what) {
  for (const RingEvent& event : ring.events) {
    if (event.kind == kind && event.what == what) return &event;
  }
  return nullptr;
}

TEST_F(GuardRing, WhatAKilledProcessHadAsked) {
  Ran ran = run(k_start + "info\nalloc a 500M\nvmm h 0 100M\nfree a\nalloc b 900M\ndie");
  EXPECT_TRUE(WIFSIGNALED(ran.status));
  std::vector<GpuRing> all = rings();
  ASSERT_EQ(all.size(), 1u);
  const GpuRing& ring = all[0];
  EXPECT_EQ(ring.program, "guard_actor");
  EXPECT_EQ(ring.driver_version, 13000u);
  EXPECT_TRUE(ring.quota);
  EXPECT_FALSE(ring.domain_failed);
  EXPECT_EQ(ring.torn_events, 0u);
  ASSERT_EQ(ring.devices.size(), 1u);
  EXPECT_EQ(ring.devices[0].uuid, "GPU-00000000-1111-2222-3333-444444444440");
  EXPECT_EQ(ring.devices[0].limit_bytes, 1024 * k_mib);
  EXPECT_EQ(ring.devices[0].total_bytes, 4096 * k_mib);
  EXPECT_EQ(ring.devices[0].used_bytes, 400 * k_mib);
  EXPECT_EQ(ring.devices[0].peak_bytes, 900 * k_mib);
  EXPECT_EQ(ring.devices[0].overhead_bytes, 300 * k_mib);
  EXPECT_EQ(ring.devices[0].told_free_bytes, 724 * k_mib);
  EXPECT_EQ(ring.devices[0].refusals, 1u);
  const RingEvent* given = find(ring, RingKind::alloc, RingWhat::granted);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->bytes, 500 * k_mib);
  EXPECT_EQ(given->used_bytes, 800 * k_mib);
  EXPECT_EQ(given->device, 0);
  EXPECT_EQ(given->module.substr(given->module.rfind('/') + 1), "guard_actor");
  EXPECT_GE(given->ns, ring.started_ns);
  EXPECT_TRUE(find(ring, RingKind::vmm, RingWhat::granted));
  EXPECT_TRUE(find(ring, RingKind::context, RingWhat::granted));
  const RingEvent* freed = find(ring, RingKind::alloc, RingWhat::released);
  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->address, given->address);
  ASSERT_EQ(ring.refusals.size(), 1u);
  EXPECT_EQ(ring.refusals[0].asked_bytes, 900 * k_mib);
  EXPECT_EQ(ring.refusals[0].own_bytes, 400 * k_mib);
  EXPECT_EQ(ring.refusals[0].domain_bytes, 400 * k_mib);
  EXPECT_EQ(ring.refusals[0].what, RingWhat::refused);
  EXPECT_FALSE(ring.refusals[0].card_asked);
}

// A card that is full is not the quota's doing.
TEST_F(GuardRing, TheCardsRefusalIsToldApart) {
  limit(8000);
  run(k_start + "alloc a 3000M\nalloc b 1000M");
  const GpuRing ring = rings().at(0);
  ASSERT_EQ(ring.refusals.size(), 1u);
  EXPECT_EQ(ring.refusals[0].what, RingWhat::driver_refused);
  EXPECT_TRUE(ring.refusals[0].card_asked);
  EXPECT_EQ(ring.refusals[0].card_free_bytes, 796 * k_mib);
  EXPECT_EQ(ring.devices[0].refusals, 0u);
  EXPECT_EQ(ring.devices[0].driver_refusals, 1u);
  // What is held, without the request; and this process is one of the quota's.
  EXPECT_EQ(ring.refusals[0].own_bytes, 3300 * k_mib);
  EXPECT_EQ(ring.refusals[0].domain_bytes, 3300 * k_mib);
  EXPECT_EQ(ring.refusals[0].processes, 1u);
  EXPECT_EQ(ring.devices[0].used_bytes, 3300 * k_mib);
  EXPECT_EQ(ring.events.back().used_bytes, 3300 * k_mib);
}

TEST_F(GuardRing, ACardsRefusalOfASmallBlockHoldsNothing) {
  limit(8000);
  run(k_start + "alloc a 3795M\nalloc b 500K\nalloc c 600K\nalloc d 700K");
  const GpuRing ring = rings().at(0);
  ASSERT_FALSE(ring.refusals.empty());
  for (const formats::RingRefusal& one : ring.refusals) {
    EXPECT_EQ(one.own_bytes, one.domain_bytes);
    EXPECT_LE(one.own_bytes, 4096 * k_mib);
  }
  EXPECT_LE(ring.devices[0].used_bytes, 4096 * k_mib);
}

TEST_F(GuardRing, TheLastEventsAndRefusalsStay) {
  std::string script = k_start;
  for (int i = 0; i < 2500; ++i) script += "alloc a 2M\nfree a\n";
  for (int i = 0; i < 40; ++i) script += "alloc b " + std::to_string(1000 + i) + "M\n";
  run(script);
  const GpuRing ring = rings().at(0);
  EXPECT_GT(ring.event_count, 5040u);
  EXPECT_EQ(ring.events.size(), 4096u);
  EXPECT_EQ(ring.torn_events, 0u);
  EXPECT_EQ(ring.events.back().bytes, 1039 * k_mib);
  EXPECT_EQ(ring.refusal_count, 40u);
  ASSERT_EQ(ring.refusals.size(), 16u);
  EXPECT_EQ(ring.refusals.front().asked_bytes, 1024 * k_mib);
  EXPECT_EQ(ring.refusals.back().asked_bytes, 1039 * k_mib);
}

// Recorded without a quota too (`--supervise`).
TEST_F(GuardRing, WithoutADomain) {
  environment = {"CUFIT_DOMAIN="};
  EXPECT_EQ(run(k_start + "alloc a 3000M\ninfo").out,
            "init: 0\ncontext 0: 0\nalloc a 3000M: 0\ninfo: 0 free 796 total 4096\n");
  const GpuRing ring = rings().at(0);
  EXPECT_FALSE(ring.quota);
  EXPECT_FALSE(ring.devices.at(0).limited);
  EXPECT_TRUE(find(ring, RingKind::alloc, RingWhat::granted));
}

// A folder that is not there: no ring, and nothing else is different.
TEST_F(GuardRing, WhereItCannotBeWritten) {
  environment = {"CUFIT_RING=" + path("no/such/folder")};
  EXPECT_EQ(run(k_start + "alloc a 700M\nalloc b 100M").out,
            "init: 0\ncontext 0: 0\nalloc a 700M: 0\nalloc b 100M: 2\n");
}

TEST_F(GuardRing, WhereFilesMayNotBeThatLarge) {
  EXPECT_EQ(run("filesize 64K\n" + k_start + "alloc a 700M").out,
            "filesize 64K: 0\ninit: 0\ncontext 0: 0\nalloc a 700M: 0\n");
  EXPECT_TRUE(rings().empty());
}

// A child has its own, threads write to one.
TEST_F(GuardRing, ForkAndThreads) {
  run(k_start + "threads 4 200 3M\nfork init; context 0; alloc a 10M");
  std::vector<GpuRing> all = rings();
  ASSERT_EQ(all.size(), 2u);
  const GpuRing& parent = all[0].event_count > all[1].event_count ? all[0] : all[1];
  const GpuRing& child = all[0].event_count > all[1].event_count ? all[1] : all[0];
  EXPECT_GE(parent.event_count, 1600u);
  EXPECT_EQ(parent.torn_events, 0u);
  EXPECT_NE(parent.pid, child.pid);
  EXPECT_EQ(child.events.back().tid, child.pid);
}

// A launch of many processes does not fill /dev/shm: the newest recordings stay, and those of all who live.
TEST_F(GuardRing, TheNewestOfALaunchStay) {
  run(k_start + "alloc a 10M");
  const std::string first = std::filesystem::directory_iterator(path("rings"))->path().string();
  std::string bytes = read_bytes(first);
  std::filesystem::remove(first);
  const std::string pid =
      first.substr(first.rfind('/') + 1, first.find('-', first.rfind('/')) - first.rfind('/') - 1);
  const auto older = [&](size_t ticks) {
    return path("rings/" + pid + "-" + std::to_string(ticks) + ".ring");
  };
  const pid_t living = start_until("alloc", k_start + "alloc a 10M\nsleep 60");
  for (size_t i = 0; i < 2 * CUFIT_RING_KEPT; ++i)
    write_bytes(older(uint64_t{1} << 60 | i), bytes);  // started after the living one
  // Nobody here can say whether its process lives.
  bytes[offsetof(cufit_ring_header, pid_namespace)] ^= 1;
  write_bytes(older(1), bytes);
  write_bytes(path("rings/notes-1.ring"), bytes);
  write_bytes(older(2), "no recording");
  run(k_start + "alloc a 20M");
  size_t kept = 0;
  for (size_t i = 0; i < 2 * CUFIT_RING_KEPT; ++i) {
    const bool there = std::filesystem::exists(older(uint64_t{1} << 60 | i));
    if (there) ++kept;
    EXPECT_TRUE(there || kept == 0) << "a newer one went before " << i;
  }
  // With them: the living one, the other namespace's, the one of text, the new one.
  EXPECT_EQ(kept, CUFIT_RING_KEPT - 4);
  size_t own = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("rings")))
    own += entry.path().filename().string().rfind(std::to_string(living) + "-", 0) == 0;
  EXPECT_EQ(own, 1u);
  EXPECT_TRUE(std::filesystem::exists(older(1)));
  EXPECT_TRUE(std::filesystem::exists(older(2)));
  EXPECT_TRUE(std::filesystem::exists(path("rings/notes-1.ring")));
  kill(living, SIGKILL);
  waitpid(living, nullptr, 0);
}

}  // namespace
}  // namespace cufit::test
