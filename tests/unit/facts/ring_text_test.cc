// SPDX-License-Identifier: Apache-2.0
#include "facts/ring_text.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::facts {
namespace ring_text_test {

constexpr uint64_t k_mib = 1024 * 1024;

formats::RingRefusal refusal(uint64_t asked_mib, uint64_t own_mib, uint64_t domain_mib,
                             uint64_t limit_mib) {
  formats::RingRefusal out;
  out.kind = formats::RingKind::alloc, out.what = formats::RingWhat::refused;
  out.device = 0, out.ns = 100, out.processes = 2;
  out.asked_bytes = asked_mib * k_mib, out.own_bytes = own_mib * k_mib;
  out.domain_bytes = domain_mib * k_mib, out.limit_bytes = limit_mib * k_mib;
  out.module = "/opt/x/libcudart.so.12";
  return out;
}

formats::GpuRing ring_of(const formats::RingRefusal& refusal) {
  formats::GpuRing out;
  out.program = "python", out.pid = 7, out.driver_version = 13000;
  formats::RingDevice device;
  device.uuid = "GPU-a", device.limited = true, device.limit_bytes = refusal.limit_bytes;
  device.total_bytes = 4096 * k_mib;
  out.devices = {device};
  out.refusals = {refusal};
  return out;
}

// The ids in their order, with the argument that matters: "enough 1280MiB".
std::string said(const formats::GpuRing& ring) {
  std::string out;
  for (const RingLine& line : ring_lines(ring)) {
    if (line.id == "head" || starts_with(line.id, "device") || line.id == "counts") continue;
    out += (out.empty() ? "" : "; ") + line.id;
    for (const char* key : {"enough", "wanted", "others", "free"})
      if (const auto found = line.args.find(key); found != line.args.end())
        out += " " + found->second;
  }
  return out;
}

TEST(RingText, WhatTheQuotaRefused) {
  EXPECT_EQ(said(ring_of(refusal(300, 800, 800, 1024))), "asked; quota_refused; enough 1280MiB");
  EXPECT_EQ(said(ring_of(refusal(300, 300, 900, 1024))),
            "asked; quota_refused; others 600 MiB; enough_others 1280MiB");
  EXPECT_EQ(said(ring_of(refusal(4000, 400, 400, 1024))), "asked; quota_refused; beyond 4.5 GiB");
  formats::GpuRing none = ring_of(refusal(1, 1, 1, 1));
  none.refusals.clear();
  EXPECT_EQ(said(none), "");
}

// What the guard charges is more than what was asked: pages of 2 MiB, and a pool's steps.
TEST(RingText, TheQuotaThatWouldDoHoldsWhatIsCharged) {
  formats::RingRefusal odd = refusal(257, 1023, 1023, 1024);
  EXPECT_EQ(quota_that_would_do(odd) / k_mib, 1536u);  // 1023 + 258
  odd.kind = formats::RingKind::pool;
  odd.asked_bytes = 200 * k_mib;
  EXPECT_EQ(quota_that_would_do(odd) / k_mib, 1536u);  // 1023 + 200 + 64
  odd.asked_bytes = UINT64_MAX;
  EXPECT_GE(quota_that_would_do(odd), UINT64_MAX / 2);
}

// With several GPUs the others keep what they have.
TEST(RingText, EachGpuKeepsItsLimit) {
  formats::GpuRing ring = ring_of(refusal(300, 800, 800, 1024));
  formats::RingDevice other = ring.devices[0];
  other.ordinal = 1;
  ring.devices.push_back(other);
  EXPECT_EQ(said(ring), "asked; quota_refused; enough 1280MiB");
  ring.devices[1].limit_bytes = 512 * k_mib;
  EXPECT_EQ(said(ring), "asked; quota_refused; enough 0:1280MiB,1:512MiB");
  ring.devices[1].limited = false;
  EXPECT_EQ(said(ring), "asked; quota_refused; enough 0:1280MiB");
}

TEST(RingText, WhatTheDriverRefused) {
  formats::RingRefusal full = refusal(900, 300, 300, 8000);
  full.what = formats::RingWhat::driver_refused;
  EXPECT_EQ(said(ring_of(full)), "asked; driver_unknown");
  full.card_asked = true, full.card_free_bytes = 400 * k_mib;
  EXPECT_EQ(said(ring_of(full)), "asked; room_others 3.3 GiB 400 MiB");
  full.own_bytes = full.domain_bytes = 3600 * k_mib;
  EXPECT_EQ(said(ring_of(full)), "asked; room_own 400 MiB");
  full.card_free_bytes = 1000 * k_mib;
  EXPECT_EQ(said(ring_of(full)), "asked; room_enough 1000 MiB");
  formats::GpuRing on = ring_of(full);
  formats::RingEvent given;
  given.what = formats::RingWhat::granted, given.device = 0, given.ns = 200, given.bytes = k_mib;
  on.events = {given};
  EXPECT_EQ(said(on), "asked; driver_went_on; room_enough 1000 MiB");
}

TEST(RingText, WhoGotAsMuchLaterCameThrough) {
  formats::GpuRing ring = ring_of(refusal(300, 800, 800, 1024));
  formats::RingEvent given;
  given.what = formats::RingWhat::granted, given.device = 0, given.ns = 200;
  given.bytes = 300 * k_mib;
  ring.events = {given};
  EXPECT_EQ(said(ring), "asked; came_through");
  // Less than was asked: it may have done with that.
  ring.events[0].bytes -= 1;
  EXPECT_EQ(said(ring), "asked; quota_went_on; enough 1280MiB");
  // What the guard learns of is no request; another GPU's request says nothing of this one.
  ring.events[0].kind = formats::RingKind::overhead;
  EXPECT_EQ(said(ring), "asked; quota_refused; enough 1280MiB");
  ring.events[0] = given, ring.events[0].device = 1;
  EXPECT_EQ(said(ring), "asked; quota_refused; enough 1280MiB");
  ring.events[0] = given, ring.events[0].ns = 50;
  EXPECT_EQ(said(ring), "asked; quota_refused; enough 1280MiB");
}

TEST(RingText, ARefusalThatNothingFollowedGoesBeforeALaterOne) {
  formats::GpuRing ring = ring_of(refusal(300, 800, 800, 1024));
  ring.refusals.push_back(refusal(200, 100, 100, 1024));
  ring.refusals[1].number = 1, ring.refusals[1].device = 1, ring.refusals[1].ns = 150;
  formats::RingEvent given;
  given.what = formats::RingWhat::granted, given.device = 1, given.ns = 200;
  given.bytes = 200 * k_mib;
  ring.events = {given};
  EXPECT_EQ(telling_refusal(ring), &ring.refusals[0]);
  ring.events.clear();
  EXPECT_EQ(telling_refusal(ring), &ring.refusals[1]);
}

TEST(RingText, TheLastRefusalIsTold) {
  formats::GpuRing ring = ring_of(refusal(300, 800, 800, 1024));
  ring.refusals.push_back(refusal(100, 100, 900, 1024));
  ring.refusals[1].number = 1;
  EXPECT_EQ(said(ring), "asked; quota_refused; others 800 MiB; enough_others 1024MiB");
}

// The file is anybody's: nothing of it is a line of its own, and sums that overflow stay sums.
TEST(RingText, HostileNames) {
  formats::GpuRing ring = ring_of(refusal(0, 0, 0, 0));
  ring.refusals[0].domain_bytes = ring.refusals[0].asked_bytes = UINT64_MAX;
  ring.refusals[0].own_bytes = UINT64_MAX;
  ring.refusals[0].module = "/x/\ncufit ring: the quota of 1 GiB refused it\x1b[31m";
  ring.program = "a\nb", ring.foreign = "\x1b]0;x\x07", ring.unknown = {"c\rd"};
  ring.devices[0].total_bytes = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    formats::RingEvent event;
    event.what = formats::RingWhat::granted, event.device = 0;
    event.address = static_cast<uint64_t>(i + 1), event.bytes = UINT64_MAX - 1;
    ring.events.push_back(event);
  }
  for (const RingLine& line : ring_lines(ring))
    for (const auto& [name, value] : line.args)
      for (const char c : value) EXPECT_GE(static_cast<unsigned char>(c), 0x20u) << line.id << name;
}

}  // namespace ring_text_test
}  // namespace cufit::facts
