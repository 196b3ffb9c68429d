// SPDX-License-Identifier: Apache-2.0
#include "formats/system/gpu_ring.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/abi/gpu_ring.h"

namespace cufit::formats {
namespace {

struct RingFile {
  std::string bytes = std::string(CUFIT_RING_BYTES, '\0');

  RingFile() {
    std::memcpy(header().magic, CUFIT_RING_MAGIC, 8);
    header().version = CUFIT_RING_VERSION;
    header().header_bytes = CUFIT_RING_HEADER_BYTES;
    header().event_bytes = CUFIT_RING_EVENT_BYTES;
    header().event_count = CUFIT_RING_EVENTS;
    header().started_ns = 1000000, header().started_monotonic_ns = 500;
    header().module_count = 1;
    std::strcpy(header().modules[0].name, "/opt/libnccl.so.2");
  }
  cufit_ring_header& header() { return *reinterpret_cast<cufit_ring_header*>(bytes.data()); }
  cufit_ring_event& event(size_t place) {
    return reinterpret_cast<cufit_ring_event*>(bytes.data() + CUFIT_RING_HEADER_BYTES)[place];
  }
  void put(uint64_t number, uint64_t size) {
    cufit_ring_event& at = event(number % CUFIT_RING_EVENTS);
    at = {};
    at.sequence = static_cast<uint32_t>(number + 1), at.ns = 600, at.bytes = size;
    at.kind = CUFIT_RING_KIND_VMM, at.what = CUFIT_RING_GRANTED;
  }
};

TEST(GpuRing, AnEventAsItWasWritten) {
  RingFile file;
  file.put(0, 77);
  file.event(0).address = 5, file.event(0).used = 99, file.event(0).tid = 12;
  file.event(0).result = 2, file.event(0).device = 3;
  file.header().head = 1;
  auto ring = parse_gpu_ring(file.bytes);
  ASSERT_TRUE(ring) << ring.error().text();
  ASSERT_EQ(ring->events.size(), 1u);
  const RingEvent& event = ring->events[0];
  EXPECT_EQ(event.ns, 1000100u);
  EXPECT_EQ(event.kind, RingKind::vmm);
  EXPECT_EQ(event.what, RingWhat::granted);
  EXPECT_EQ(event.bytes, 77u);
  EXPECT_EQ(event.address, 5u);
  EXPECT_EQ(event.used_bytes, 99u);
  EXPECT_EQ(event.device, 3);
  EXPECT_EQ(event.result, 2);
  EXPECT_EQ(event.module, "/opt/libnccl.so.2");
}

// Around once and a half: the oldest first, and what a killed thread left half is not told.
TEST(GpuRing, TheLastOnesInTheirOrder) {
  RingFile file;
  for (uint64_t i = 0; i < 6000; ++i) file.put(i, i);
  file.header().head = 6000;
  file.event(5999 % CUFIT_RING_EVENTS).sequence = 0;
  auto ring = parse_gpu_ring(file.bytes);
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->event_count, 6000u);
  EXPECT_EQ(ring->torn_events, 1u);
  ASSERT_EQ(ring->events.size(), 4095u);
  EXPECT_EQ(ring->events.front().bytes, 6000u - 4096);
  EXPECT_EQ(ring->events.back().bytes, 5998u);
}

TEST(GpuRing, NumbersThatCannotBe) {
  RingFile file;
  file.put(0, 1);
  file.event(0).kind = 200, file.event(0).what = 200, file.event(0).device = 200;
  file.event(0).module = 70;
  file.header().head = UINT64_MAX;  // no event stands where that says
  file.header().module_count = UINT32_MAX;
  file.header().refusal_head = UINT64_MAX;
  auto ring = parse_gpu_ring(file.bytes);
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->events.size() + ring->torn_events, 4096u);
  file.header().head = 1;
  ring = parse_gpu_ring(file.bytes);
  ASSERT_EQ(ring->events.size(), 1u);
  EXPECT_EQ(ring->events[0].kind, RingKind::none);
  EXPECT_EQ(ring->events[0].device, -1);
  EXPECT_EQ(ring->events[0].module, "");
}

TEST(GpuRing, RefusalsAndDevices) {
  RingFile file;
  cufit_ring_refusal& refusal = file.header().refusals[17 % 16];
  refusal.sequence = 18, refusal.asked_bytes = 5, refusal.card_free_bytes = UINT64_MAX;
  refusal.what = CUFIT_RING_REFUSED;
  file.header().refusal_head = 18;
  cufit_ring_device& device = file.header().devices[2];
  device.seen = 1, device.limit_bytes = UINT64_MAX, device.told_total_bytes = UINT64_MAX;
  device.uuid[0] = 0xab;
  auto ring = parse_gpu_ring(file.bytes);
  ASSERT_TRUE(ring);
  ASSERT_EQ(ring->refusals.size(), 1u);
  EXPECT_EQ(ring->refusals[0].number, 17u);
  EXPECT_FALSE(ring->refusals[0].card_asked);
  ASSERT_EQ(ring->devices.size(), 1u);
  EXPECT_EQ(ring->devices[0].ordinal, 2);
  EXPECT_FALSE(ring->devices[0].limited);
  EXPECT_FALSE(ring->devices[0].told);
  EXPECT_EQ(ring->devices[0].uuid, "GPU-ab000000-0000-0000-0000-000000000000");
}

TEST(GpuRing, WhatIsNoRing) {
  RingFile file;
  EXPECT_FALSE(is_gpu_ring("CUFIT"));
  EXPECT_EQ(parse_gpu_ring("").error().what, "not the ring of a process");
  EXPECT_EQ(parse_gpu_ring(file.bytes.substr(0, 70000)).error().what,
            "a ring that ends at byte 70000 of 262144");
  file.header().version = 9;
  EXPECT_EQ(parse_gpu_ring(file.bytes).error().code, Code::unsupported);
  file.header().version = 1, file.header().event_count = 1;
  EXPECT_EQ(parse_gpu_ring(file.bytes).error().what, "a ring with sizes that it cannot have");
}

}  // namespace
}  // namespace cufit::formats
