// SPDX-License-Identifier: Apache-2.0
#include "formats/system/gpu_ring.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/abi/gpu_ring.h"
#include "base/format.h"
#include "formats/system/fixed_text.h"

namespace cufit::formats {
namespace {

RingKind ring_kind(uint8_t value) {
  return value <= CUFIT_RING_KIND_LAST ? static_cast<RingKind>(value) : RingKind::none;
}
RingWhat ring_what(uint8_t value) {
  return value <= CUFIT_RING_WHAT_LAST ? static_cast<RingWhat>(value) : RingWhat::none;
}

struct RingReader {
  const cufit_ring_header& header;
  std::string_view bytes;

  int device(uint8_t value) const { return value < CUFIT_RING_DEVICES ? value : -1; }

  std::string module(uint8_t row) const {
    bool known = row < CUFIT_RING_MODULES && row < header.module_count;
    const auto& name = header.modules[known ? row : 0].name;
    return known ? fixed_text(name, sizeof name) : std::string();
  }

  // The file has times of a clock that began at the boot.
  uint64_t real_time(uint64_t ns) const {
    return header.started_ns + (ns - header.started_monotonic_ns);
  }

  bool event(uint64_t number, RingEvent* out) const {
    cufit_ring_event raw;
    std::memcpy(&raw,
                bytes.data() + CUFIT_RING_HEADER_BYTES +
                    number % CUFIT_RING_EVENTS * CUFIT_RING_EVENT_BYTES,
                sizeof raw);
    if (raw.sequence != static_cast<uint32_t>(number + 1)) return false;
    *out = {number,
            real_time(raw.ns),
            ring_kind(raw.kind),
            ring_what(raw.what),
            device(raw.device),
            raw.address,
            raw.bytes,
            raw.used,
            raw.tid,
            raw.result,
            module(raw.module)};
    return true;
  }

  bool refusal(uint64_t number, RingRefusal* out) const {
    const cufit_ring_refusal& raw = header.refusals[number % CUFIT_RING_REFUSALS];
    if (raw.sequence != static_cast<uint32_t>(number + 1)) return false;
    out->number = number;
    out->ns = real_time(raw.ns);
    out->kind = ring_kind(raw.kind), out->what = ring_what(raw.what);
    out->device = device(raw.device);
    out->asked_bytes = raw.asked_bytes, out->own_bytes = raw.own_bytes;
    out->domain_bytes = raw.domain_bytes, out->limit_bytes = raw.limit_bytes;
    out->swept_bytes = raw.swept_bytes, out->trimmed_bytes = raw.trimmed_bytes;
    out->card_asked = raw.card_free_bytes != UINT64_MAX;
    out->card_free_bytes = out->card_asked ? raw.card_free_bytes : 0;
    out->processes = raw.processes, out->tid = raw.tid;
    out->module = module(raw.module), out->caller_offset = raw.caller_offset;
    return true;
  }
};

RingDevice ring_device(const cufit_ring_device& raw, int ordinal) {
  RingDevice out;
  out.ordinal = ordinal;
  out.uuid = gpu_uuid_text(raw.uuid, false);
  out.pci = fixed_text(raw.pci, sizeof raw.pci);
  out.limited = raw.limit_bytes != UINT64_MAX;
  out.limit_bytes = out.limited ? raw.limit_bytes : 0;
  out.total_bytes = raw.total_bytes;
  out.used_bytes = raw.used_bytes, out.peak_bytes = raw.peak_bytes;
  out.overhead_bytes = raw.overhead_bytes;
  out.told = raw.told_total_bytes != UINT64_MAX;
  if (out.told)
    out.told_free_bytes = raw.told_free_bytes, out.told_total_bytes = raw.told_total_bytes;
  out.grants = raw.grants, out.refusals = raw.refusals, out.driver_refusals = raw.driver_refusals;
  return out;
}

GpuRing ring_of_header(const cufit_ring_header& header) {
  GpuRing out;
  out.pid = header.pid, out.start_ticks = header.start_ticks, out.started_ns = header.started_ns;
  out.program = fixed_text(header.program, sizeof header.program);
  out.guard_version = fixed_text(header.guard_version, sizeof header.guard_version);
  out.share = fixed_text(header.share, sizeof header.share);
  out.foreign = fixed_text(header.foreign, sizeof header.foreign);
  out.driver_version = header.driver_version;
  out.arguments_hash = header.arguments_hash;
  out.quota = (header.flags & CUFIT_RING_QUOTA) != 0;
  out.nvml = (header.flags & CUFIT_RING_NVML) != 0;
  out.domain_failed = (header.flags & CUFIT_RING_DOMAIN_FAILED) != 0;
  for (const auto& name : header.unknown) {
    if (name[0]) out.unknown.push_back(fixed_text(name, sizeof name));
  }
  for (uint32_t i = 0; i < CUFIT_RING_DEVICES; ++i) {
    if (header.devices[i].seen == 1)
      out.devices.push_back(ring_device(header.devices[i], static_cast<int>(i)));
  }
  out.event_count = header.head, out.refusal_count = header.refusal_head;
  return out;
}

}  // namespace

bool is_gpu_ring(std::string_view bytes) { return bytes.substr(0, 8) == CUFIT_RING_MAGIC; }

Result<GpuRing> parse_gpu_ring(std::string_view bytes) {
  if (!is_gpu_ring(bytes)) return fail(Code::malformed, "not the ring of a process");
  if (bytes.size() < CUFIT_RING_BYTES)
    return fail(Code::malformed,
                format("a ring that ends at byte {} of {}", bytes.size(), CUFIT_RING_BYTES));
  auto header = std::make_unique<cufit_ring_header>();
  std::memcpy(header.get(), bytes.data(), sizeof *header);
  if (header->version != CUFIT_RING_VERSION)
    return fail(Code::unsupported, format("a ring of version {}", header->version));
  if (header->header_bytes != CUFIT_RING_HEADER_BYTES ||
      header->event_bytes != CUFIT_RING_EVENT_BYTES || header->event_count != CUFIT_RING_EVENTS)
    return fail(Code::malformed, "a ring with sizes that it cannot have");
  GpuRing out = ring_of_header(*header);
  RingReader reader{*header, bytes};
  uint64_t first = out.event_count - std::min<uint64_t>(out.event_count, CUFIT_RING_EVENTS);
  for (uint64_t number = first; number != out.event_count; ++number) {
    RingEvent event;
    if (reader.event(number, &event))
      out.events.push_back(std::move(event));
    else
      ++out.torn_events;
  }
  first = out.refusal_count - std::min<uint64_t>(out.refusal_count, CUFIT_RING_REFUSALS);
  for (uint64_t number = first; number != out.refusal_count; ++number) {
    RingRefusal refusal;
    if (reader.refusal(number, &refusal)) out.refusals.push_back(std::move(refusal));
  }
  return out;
}

}  // namespace cufit::formats
