// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "base/shell_word.h"
#include "report/crash_report.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using formats::GpuRing;
using formats::RingRefusal;
using formats::RingWhat;

// The last one of a kind; null = none is in the file.
const RingRefusal* last_of(const GpuRing& ring, RingWhat what) {
  const RingRefusal* out = nullptr;
  for (const RingRefusal& one : ring.refusals)
    if (one.what == what) out = &one;
  return out;
}

uint64_t count_of(const GpuRing& ring, RingWhat what) {
  uint64_t out = 0;
  for (const formats::RingDevice& device : ring.devices)
    out += what == RingWhat::refused ? device.refusals : device.driver_refusals;
  return out;
}

std::string line_of(const CrashReportView& view, const GpuRing& ring, RingWhat what,
                    std::string_view lang) {
  const RingRefusal* last = last_of(ring, what);
  if (last == nullptr) return {};
  const uint64_t others = last->domain_bytes - std::min(last->domain_bytes, last->own_bytes);
  return message(view.knowledge,
                 what == RingWhat::refused ? "death.refusals" : "death.refusals_card", lang,
                 {{"program", printable(ring.program)},
                  {"pid", std::to_string(ring.pid)},
                  {"count", std::to_string(count_of(ring, what))},
                  {"gpu", std::to_string(last->device)},
                  {"asked", format_bytes(last->asked_bytes)},
                  {"domain", format_bytes(last->domain_bytes)},
                  {"limit", format_bytes(last->limit_bytes)},
                  {"own", format_bytes(last->own_bytes)},
                  {"others", format_bytes(others)},
                  {"free", last->card_asked ? format_bytes(last->card_free_bytes) : "?"},
                  {"processes", std::to_string(last->processes)}});
}

}  // namespace

std::string crash_report_quota(const CrashReportView& view, std::string_view lang) {
  std::string out;
  const auto add = [&](const std::string& line) {
    if (!line.empty()) out += (out.empty() ? "" : "\n") + line;
  };
  for (size_t i = 0; i < view.rings.size(); ++i) {
    const GpuRing& ring = view.rings[i];
    if (ring.domain_failed)
      add(message(view.knowledge, "death.limit_failed", lang,
                  {{"program", printable(ring.program)}, {"pid", std::to_string(ring.pid)}}));
    add(line_of(view, ring, RingWhat::refused, lang));
    // Without a limit the output says it as well: a full card is the program's own message.
    if (ring.quota) add(line_of(view, ring, RingWhat::driver_refused, lang));
    const bool told = ring.domain_failed || (ring.quota && !ring.refusals.empty());
    if (told && i < view.ring_paths.size())
      add(message(view.knowledge, "death.black_box", lang,
                  {{"file", shell_word(view.ring_paths[i])}}));
  }
  return out;
}

}  // namespace cufit::report
