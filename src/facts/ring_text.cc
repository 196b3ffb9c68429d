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
// Quotas are told in steps that a person would type.
constexpr uint64_t k_quota_step = 256 * k_ring_mib;

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
      return "a CUDA graph";
    case RingKind::context:
      return "a CUDA context";
    default:
      return "cuMemAlloc";
  }
}

uint64_t ring_sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

std::string file_name(const std::string& module) {
  const std::string name = module.substr(module.rfind('/') + 1);
  return name.empty() ? "an unknown library" : formats::printable(name, 80);
}

class RingWriter {
 public:
  explicit RingWriter(const GpuRing& ring) : ring_(ring) {}

  std::string write() {
    head();
    for (const RingDevice& device : ring_.devices) one_device(device);
    // The last one of each kind is what the program met; earlier ones only count.
    const RingRefusal* last = nullptr;
    for (const RingRefusal& refusal : ring_.refusals)
      if (!last || refusal.number >= last->number) last = &refusal;
    if (last) refusal(*last);
    for (const RingDevice& device : ring_.devices) holders(device);
    return out_;
  }

 private:
  void line(const std::string& text) { out_ += "cufit ring: " + text + "\n"; }

  const RingDevice* device(int ordinal) const {
    for (const RingDevice& one : ring_.devices)
      if (one.ordinal == ordinal) return &one;
    return nullptr;
  }

  void head() {
    line(format("of {}, pid {}, CUDA {}.{} of the driver", formats::printable(ring_.program, 64),
                ring_.pid, ring_.driver_version / 1000, ring_.driver_version % 1000 / 10));
    if (ring_.domain_failed) line("the file of its quota could not be used: nothing was limited");
    if (!ring_.foreign.empty())
      line(format("another library stands between it and the driver: {}",
                  formats::printable(ring_.foreign, 64)));
    for (const std::string& call : ring_.unknown)
      line(format("called and not counted: {}", formats::printable(call, 64)));
    if (ring_.torn_events > 0)
      line(format("{} of its {} events were cut off", ring_.torn_events, ring_.event_count));
  }

  void one_device(const RingDevice& device) {
    std::string text = format("GPU {} {} with {}, ", device.ordinal, device.uuid,
                              format_bytes(device.total_bytes));
    text += device.limited ? format("quota {}", format_bytes(device.limit_bytes)) : "no quota";
    text += format(": in use at the end {}, high water {}, of it {} context and libraries",
                   format_bytes(device.used_bytes), format_bytes(device.peak_bytes),
                   format_bytes(device.overhead_bytes));
    line(text);
    line(format("GPU {}: {} grants, {} refusals by the quota, {} by the driver", device.ordinal,
                device.grants, device.refusals, device.driver_refusals));
    if (device.told)
      line(format("GPU {}: cuMemGetInfo told the program {} of {}", device.ordinal,
                  format_bytes(device.told_free_bytes), format_bytes(device.told_total_bytes)));
  }

  // Was as much given later, so that the program lived on (torch frees its cache and asks again)?
  bool came_through(const RingRefusal& refusal) const {
    return std::any_of(ring_.events.begin(), ring_.events.end(), [&](const RingEvent& event) {
      return event.what == RingWhat::granted && event.ns > refusal.ns &&
             event.device == refusal.device && event.bytes >= refusal.asked_bytes;
    });
  }

  void refusal(const RingRefusal& refusal) {
    const bool quota = refusal.what == RingWhat::refused;
    line(
        format("asked at the last refusal: {} by {} in {} on GPU {}; this process had {}, all {} "
               "of the quota {}",
               format_bytes(refusal.asked_bytes), call_of(refusal.kind), file_name(refusal.module),
               refusal.device, format_bytes(refusal.own_bytes), refusal.processes,
               format_bytes(refusal.domain_bytes)));
    if (refusal.swept_bytes > 0 || refusal.trimmed_bytes > 0)
      line(format("given back before it: {} of ended processes, {} of pools",
                  format_bytes(refusal.swept_bytes), format_bytes(refusal.trimmed_bytes)));
    if (came_through(refusal)) return line("as much was given later: the program came through");
    if (quota)
      quota_refusal(refusal);
    else
      driver_refusal(refusal);
  }

  void quota_refusal(const RingRefusal& refusal) {
    const uint64_t others =
        refusal.domain_bytes - std::min(refusal.domain_bytes, refusal.own_bytes);
    const uint64_t need = ring_sum(refusal.domain_bytes, refusal.asked_bytes);
    const uint64_t wanted = ring_sum(need, k_quota_step - 1) / k_quota_step * k_quota_step;
    const RingDevice* on = device(refusal.device);
    line(format("the quota of {} refused it", format_bytes(refusal.limit_bytes)));
    if (others > refusal.own_bytes)
      line(format("other processes of the same quota had most of it: {}", format_bytes(others)));
    else if (on && on->total_bytes > 0 && wanted > on->total_bytes)
      line(format("a quota of {} would do, more than the card's {}", format_bytes(wanted),
                  format_bytes(on->total_bytes)));
    else
      line(format("a quota of {}MiB would do", wanted / k_ring_mib));
  }

  void driver_refusal(const RingRefusal& refusal) {
    const RingDevice* on = device(refusal.device);
    if (!refusal.card_asked) return line("the driver refused it; the card's room is not known");
    const uint64_t total = on ? on->total_bytes : 0;
    const uint64_t gone =
        total - std::min(total, ring_sum(refusal.card_free_bytes, refusal.domain_bytes));
    const std::string room =
        format("the driver refused it within the quota: {} were left on the card",
               format_bytes(refusal.card_free_bytes));
    if (refusal.card_free_bytes >= refusal.asked_bytes)
      line(room + ", which is more than was asked");
    else if (gone > refusal.domain_bytes)
      line(room + format(", {} of it held by programs outside of the quota", format_bytes(gone)));
    else
      line(room + ", most of it held by this run");
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
    std::map<std::string, uint64_t> sums;
    for (const auto& [key, event] : held) {
      // What a pool or a graph reserves stands beside the requests that it serves.
      if (event->kind == RingKind::pool_size || event->kind == RingKind::graph_size) continue;
      uint64_t& sum = sums[format("{} in {}", call_of(event->kind), file_name(event->module))];
      sum = ring_sum(sum, event->bytes);
    }
    std::vector<std::pair<uint64_t, std::string>> sorted;
    for (const auto& [who, bytes] : sums) sorted.emplace_back(bytes, who);
    std::sort(sorted.rbegin(), sorted.rend());
    if (sorted.size() > k_holders) sorted.resize(k_holders);
    for (const auto& [bytes, who] : sorted)
      line(format("GPU {}: held at the end {} by {}", on.ordinal, format_bytes(bytes), who));
  }

  const GpuRing& ring_;
  std::string out_;
};

}  // namespace

std::string ring_text(const GpuRing& ring) { return RingWriter(ring).write(); }

}  // namespace cufit::facts
