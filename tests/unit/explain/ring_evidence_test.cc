// SPDX-License-Identifier: Apache-2.0
// Every sentence of a black box as the engine reads it and as a person reads it.
#include "explain/ring_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "explain/explain.h"
#include "facts/ring_text.h"

namespace cufit::explain {
namespace ring_evidence_test {

constexpr uint64_t k_mib = 1024 * 1024;
using formats::RingWhat;

formats::GpuRing full_ring() {
  formats::GpuRing ring;
  ring.program = "python", ring.pid = 7, ring.driver_version = 12040, ring.domain_failed = true;
  ring.foreign = "libvgpu.so", ring.unknown = {"cuMemNew@14000"}, ring.torn_events = 1;
  formats::RingDevice device;
  device.uuid = "GPU-a", device.limited = true, device.limit_bytes = 1024 * k_mib;
  device.total_bytes = 4096 * k_mib, device.told = true;
  formats::RingDevice free_device = device;
  free_device.ordinal = 1, free_device.limited = false;
  ring.devices = {device, free_device};
  formats::RingRefusal refusal;
  refusal.what = RingWhat::refused, refusal.device = 0, refusal.asked_bytes = 300 * k_mib;
  refusal.own_bytes = refusal.domain_bytes = 800 * k_mib, refusal.limit_bytes = 1024 * k_mib;
  refusal.swept_bytes = k_mib;
  ring.refusals = {refusal};
  formats::RingEvent held;
  held.what = RingWhat::granted, held.device = 0, held.address = 5, held.bytes = k_mib;
  ring.events = {held};
  return ring;
}

// Each message takes exactly the names that its line has, in both languages.
TEST(RingEvidence, EverySentenceIsFilled) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  for (const facts::RingLine& line : facts::ring_lines(full_ring()))
    for (const char* lang : {"en", "zh"}) {
      const std::string text(knowledge.message("explain.ring." + line.id, lang));
      ASSERT_FALSE(text.empty()) << line.id << lang;
      for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1))
        EXPECT_EQ(line.args.count(text.substr(at + 1, text.find('}', at) - at - 1)), 1u) << text;
    }
  const std::string text = ring_text(full_ring(), knowledge);
  EXPECT_EQ(text.find('{'), text.npos) << text;
  for (std::string_view line : split_lines(text))
    EXPECT_TRUE(line.empty() || starts_with(line, "cufit ring: ")) << line;
}

Explanation explained(const formats::GpuRing& ring) {
  Explainer explainer(knowledge::Knowledge::builtin());
  explainer.add(ring_text(ring, knowledge::Knowledge::builtin()));
  return explainer.finish({});
}

TEST(RingEvidence, TheEngineFindsTheCauseAndItsNumbers) {
  formats::GpuRing ring = full_ring();
  ring.domain_failed = false;
  Explanation out = explained(ring);
  ASSERT_FALSE(out.causes.empty());
  EXPECT_EQ(out.causes[0].id, "cufit_quota_reached");
  EXPECT_EQ(out.causes[0].confidence, Confidence::certain);
  EXPECT_EQ(out.causes[0].finding.args["enough"], "0:1280MiB");
  EXPECT_EQ(out.causes[0].finding.args["asked"], "300");
  ring.devices.pop_back();
  EXPECT_EQ(explained(ring).causes[0].finding.args["enough"], "1280MiB");
  ring.refusals[0].what = RingWhat::driver_refused;
  ring.refusals[0].card_asked = true;
  ring.refusals[0].domain_bytes = k_mib;
  EXPECT_EQ(explained(ring).causes[0].id, "other_process");
  ring.refusals.clear();
  ring.domain_failed = true;
  EXPECT_EQ(explained(ring).causes[0].id, "quota_file_unusable");
}

// Where nothing was refused no words of the lines are a cause, whatever the lines are called by.
TEST(RingEvidence, ARingWithoutARefusalNamesNoCause) {
  formats::GpuRing ring = full_ring();
  ring.domain_failed = false;
  const formats::RingRefusal refused = ring.refusals[0];
  ring.refusals.clear();
  Explanation out = explained(ring);
  EXPECT_TRUE(out.causes.empty()) << out.causes[0].id;
  EXPECT_FALSE(out.ring.empty());
  ring.refusals = {refused};
  formats::RingEvent given = ring.events[0];
  given.ns = refused.ns + 1, given.bytes = refused.asked_bytes;
  ring.events = {given};
  out = explained(ring);
  EXPECT_TRUE(out.causes.empty()) << out.causes[0].id;
  ring.events[0].bytes -= 1;
  out = explained(ring);
  for (const Cause& cause : out.causes)
    EXPECT_EQ(cause.confidence, Confidence::possible) << cause.id;
}

// A program is told its limit as the card's size.
TEST(RingEvidence, ALimitIsNotTheCardsSize) {
  const char* const said =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "
      "capacity of 1.00 GiB of "
      "which 512.00 MiB is free.\n";
  const auto over = [&](bool known) {
    Explainer explainer(knowledge::Knowledge::builtin());
    explainer.add(said);
    if (known) explainer.know_limit(1024 * k_mib);
    const Explanation out = explainer.finish({});
    return std::count(out.clues.begin(), out.clues.end(), "oom_tried_over_capacity");
  };
  EXPECT_EQ(over(false), 1);
  EXPECT_EQ(over(true), 0);
}

}  // namespace ring_evidence_test
}  // namespace cufit::explain
