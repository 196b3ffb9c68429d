// SPDX-License-Identifier: Apache-2.0
#include "facts/ring_text.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::facts {
namespace {

using formats::GpuRing;
using formats::RingDevice;
using formats::RingEvent;
using formats::RingKind;
using formats::RingRefusal;
using formats::RingWhat;

constexpr size_t k_holders = 4;
constexpr uint64_t k_ring_mib = 1024 * 1024;
constexpr uint64_t k_ring_page = 2 * k_ring_mib;
// A pool of cuMemAllocAsync grows in steps of 32 MiB (driver 525 to 580), and its free blocks need not fit.
constexpr uint64_t k_ring_pool_slack = 64 * k_ring_mib;
// Quotas are told in steps that a person would type.
constexpr uint64_t k_quota_step = 256 * k_ring_mib;

// In the driver's words, which no language translates.
const char* call_of(RingKind kind) {
  switch (kind) {
    case RingKind::managed:
      return "cuMemAllocManaged";
    case RingKind::vmm:
      return "cuMemCreate";
    case RingKind::pool:
    case RingKind::pool_size:
      return "cuMemAllocAsync";
    case RingKind::array:
      return "cuArrayCreate";
    case RingKind::graph:
    case RingKind::graph_size:
      return "cuGraphAddMemAllocNode";
    case RingKind::context:
      return "cuCtxCreate";
    default:
      return "cuMemAlloc";
  }
}

uint64_t ring_sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
uint64_t ring_up(uint64_t bytes, uint64_t step) { return ring_sum(bytes, step - 1) / step * step; }

std::string ring_file_name(const std::string& module) {
  const std::string name = module.substr(module.rfind('/') + 1);
  return name.empty() ? "?" : formats::printable(name, 80);
}

class RingWriter {
 public:
  explicit RingWriter(const GpuRing& ring) : ring_(ring) {}

  std::vector<RingLine> write() {
    head();
    for (const RingDevice& device : ring_.devices) one_device(device);
    if (const RingRefusal* last = telling_refusal(ring_)) refusal(*last);
    for (const RingDevice& device : ring_.devices) holders(device);
    return std::move(out_);
  }

 private:
  void line(const char* id, std::map<std::string, std::string> args = {}) {
    out_.push_back({id, std::move(args)});
  }

  const RingDevice* device(int ordinal) const {
    for (const RingDevice& one : ring_.devices)
      if (one.ordinal == ordinal) return &one;
    return nullptr;
  }

  void head() {
    line(
        "head",
        {{"program", formats::printable(ring_.program, 64)},
         {"pid", std::to_string(ring_.pid)},
         {"cuda", format("{}.{}", ring_.driver_version / 1000, ring_.driver_version % 1000 / 10)}});
    if (ring_.domain_failed) line("domain_failed");
    if (!ring_.foreign.empty())
      line("foreign", {{"library", formats::printable(ring_.foreign, 64)}});
    for (const std::string& call : ring_.unknown)
      line("uncounted", {{"call", formats::printable(call, 64)}});
    if (ring_.torn_events > 0)
      line("torn", {{"torn", std::to_string(ring_.torn_events)},
                    {"count", std::to_string(ring_.event_count)}});
  }

  void one_device(const RingDevice& device) {
    const std::string gpu = std::to_string(device.ordinal);
    line(device.limited ? "device" : "device_free",
         {{"gpu", gpu},
          {"uuid", device.uuid.empty() ? "?" : device.uuid},
          {"total", format_bytes(device.total_bytes)},
          {"limit", format_bytes(device.limit_bytes)},
          {"used", format_bytes(device.used_bytes)},
          {"peak", format_bytes(device.peak_bytes)},
          {"overhead", format_bytes(device.overhead_bytes)}});
    line("counts", {{"gpu", gpu},
                    {"grants", std::to_string(device.grants)},
                    {"refusals", std::to_string(device.refusals)},
                    {"driver", std::to_string(device.driver_refusals)}});
    if (device.told)
      line("told", {{"gpu", gpu},
                    {"free", format_bytes(device.told_free_bytes)},
                    {"total", format_bytes(device.told_total_bytes)}});
  }

  void refusal(const RingRefusal& refusal) {
    line("asked", {{"asked", format_bytes(refusal.asked_bytes)},
                   {"call", call_of(refusal.kind)},
                   {"module", ring_file_name(refusal.module)},
                   {"gpu", std::to_string(refusal.device)},
                   {"own", format_bytes(refusal.own_bytes)},
                   {"processes", std::to_string(refusal.processes)},
                   {"domain", format_bytes(refusal.domain_bytes)}});
    if (refusal.swept_bytes > 0 || refusal.trimmed_bytes > 0)
      line("given_back", {{"swept", format_bytes(refusal.swept_bytes)},
                          {"trimmed", format_bytes(refusal.trimmed_bytes)}});
    const AfterRefusal after = after_refusal(ring_, refusal);
    if (after == AfterRefusal::came_through) return line("came_through");
    went_on_ = after == AfterRefusal::went_on;
    if (refusal.what == RingWhat::refused)
      quota_refusal(refusal);
    else
      driver_refusal(refusal);
  }

  // "1280MiB" for `cufit run --vram`. With several GPUs each its own, so that the others keep theirs; empty: a card has
  // less.
  std::string vram_of(const RingRefusal& refusal, uint64_t wanted) const {
    std::vector<std::string> each;
    bool alike = true;
    for (const RingDevice& one : ring_.devices) {
      const bool here = one.ordinal == refusal.device;
      if (here && one.total_bytes > 0 && wanted > one.total_bytes) return {};
      alike = alike && (here || (one.limited && one.limit_bytes == refusal.limit_bytes &&
                                 (one.total_bytes == 0 || wanted <= one.total_bytes)));
      const uint64_t limit = here ? wanted : one.limit_bytes;
      if (here || one.limited) each.push_back(format("{}:{}MiB", one.ordinal, limit / k_ring_mib));
    }
    if (alike) return format("{}MiB", wanted / k_ring_mib);
    const std::string all = join(each, ",");
    // Of many different ones, that of this GPU: more no command in a step holds (explain/captures.cc).
    return all.size() <= 60 ? all : format("{}:{}MiB", refusal.device, wanted / k_ring_mib);
  }

  void quota_refusal(const RingRefusal& refusal) {
    const uint64_t others =
        refusal.domain_bytes - std::min(refusal.domain_bytes, refusal.own_bytes);
    const uint64_t wanted = quota_that_would_do(refusal);
    const RingDevice* on = device(refusal.device);
    line(went_on_ ? "quota_went_on" : "quota_refused",
         {{"limit", format_bytes(refusal.limit_bytes)}});
    const std::string vram = vram_of(refusal, wanted);
    if (!ring_.share.empty() && !vram.empty())
      return line("enough_share",
                  {{"share", formats::printable(ring_.share, 64)}, {"enough", vram}});
    if (others > refusal.own_bytes) {
      line("others", {{"others", format_bytes(others)}});
      return vram.empty() ? line("beyond_others") : line("enough_others", {{"enough", vram}});
    }
    if (!vram.empty()) return line("enough", {{"enough", vram}});
    line("beyond",
         {{"wanted", format_bytes(wanted)}, {"total", format_bytes(on ? on->total_bytes : 0)}});
  }

  void driver_refusal(const RingRefusal& refusal) {
    const RingDevice* on = device(refusal.device);
    if (went_on_) line("driver_went_on");
    if (!refusal.card_asked) return line("driver_unknown");
    const uint64_t total = on ? on->total_bytes : 0;
    const uint64_t gone =
        total - std::min(total, ring_sum(refusal.card_free_bytes, refusal.domain_bytes));
    const std::string left = format_bytes(refusal.card_free_bytes);
    if (refusal.card_free_bytes >= refusal.asked_bytes)
      line("room_enough", {{"free", left}});
    else if (gone > refusal.domain_bytes)
      line(went_on_ ? "room_others_then" : "room_others",
           {{"free", left}, {"others", format_bytes(gone)}});
    else
      line("room_own", {{"free", left}});
  }

  // By the events that the ring still has: what was given and not freed since.
  void holders(const RingDevice& on) {
    std::map<std::pair<RingKind, uint64_t>, const RingEvent*> held;
    for (const RingEvent& event : ring_.events) {
      if (event.device != on.ordinal || event.address == 0) continue;
      const auto key = std::pair(event.kind, event.address);
      if (event.what == RingWhat::granted)
        held[key] = &event;
      else if (event.what == RingWhat::released)
        held.erase(key);
    }
    std::map<std::pair<std::string, std::string>, uint64_t> sums;
    for (const auto& [key, event] : held) {
      // What a pool or a graph reserves stands beside the requests that it serves.
      if (event->kind == RingKind::pool_size || event->kind == RingKind::graph_size) continue;
      uint64_t& sum = sums[{call_of(event->kind), ring_file_name(event->module)}];
      sum = ring_sum(sum, event->bytes);
    }
    std::vector<std::pair<uint64_t, std::pair<std::string, std::string>>> sorted;
    for (const auto& [who, bytes] : sums) sorted.emplace_back(bytes, who);
    std::sort(sorted.rbegin(), sorted.rend());
    if (sorted.size() > k_holders) sorted.resize(k_holders);
    for (const auto& [bytes, who] : sorted)
      line("held", {{"gpu", std::to_string(on.ordinal)},
                    {"bytes", format_bytes(bytes)},
                    {"call", who.first},
                    {"module", who.second}});
  }

  const GpuRing& ring_;
  bool went_on_ = false;  // after the refusal that is told
  std::vector<RingLine> out_;
};

// What a program asked for; the others are sizes that the guard learns of.
bool is_request(const RingEvent& event) {
  return (event.what == RingWhat::granted || event.what == RingWhat::spilled) &&
         event.kind != RingKind::overhead && event.kind != RingKind::pool_size &&
         event.kind != RingKind::graph_size;
}

}  // namespace

AfterRefusal after_refusal(const GpuRing& ring, const RingRefusal& refusal) {
  AfterRefusal out = AfterRefusal::nothing;
  for (const RingEvent& event : ring.events) {
    if (!is_request(event) || event.ns <= refusal.ns || event.device != refusal.device) continue;
    if (event.bytes >= refusal.asked_bytes) return AfterRefusal::came_through;
    out = AfterRefusal::went_on;
  }
  return out;
}

const RingRefusal* telling_refusal(const GpuRing& ring) {
  std::map<int, const RingRefusal*> last;  // of each GPU
  for (const RingRefusal& refusal : ring.refusals) {
    const RingRefusal*& at = last[refusal.device];
    if (!at || refusal.number >= at->number) at = &refusal;
  }
  const RingRefusal* out = nullptr;
  for (const auto& [ordinal, refusal] : last) {
    const auto weight = [&](const RingRefusal& one) {
      return std::pair(after_refusal(ring, one), one.number);
    };
    if (!out || weight(*refusal) > weight(*out)) out = refusal;
  }
  return out;
}

std::vector<RingLine> ring_lines(const GpuRing& ring) { return RingWriter(ring).write(); }

uint64_t quota_that_would_do(const RingRefusal& refusal) {
  uint64_t asked = ring_up(refusal.asked_bytes, k_ring_page);
  if (refusal.kind == RingKind::pool) asked = ring_sum(asked, k_ring_pool_slack);
  return ring_up(ring_sum(refusal.domain_bytes, asked), k_quota_step);
}

}  // namespace cufit::facts
