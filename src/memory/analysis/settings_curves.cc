// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/settings_curves.h"

#include <algorithm>

#include "base/parallel.h"

namespace cufit::analysis {
namespace {

using memory::ReplayOptions;
using memory::SegmentEvent;
using memory::VerifiedRecording;

constexpr size_t k_settings_curves_events_per_thread =
    100'000;  // a thread costs more than a short replay

ReplayOptions options_for(const VerifiedRecording& verified, const memory::Settings& settings) {
  ReplayOptions options;
  options.allocator.settings = settings;
  options.allocator.version = verified.recording.version;
  options.allocator.settings.per_process_memory_fraction.reset();  // of a card that nobody named
  options.known_reasons = memory::reasons_of(verified);
  return options;
}

// No answer where the replay says why it may be wrong.
std::optional<bool> survives(const VerifiedRecording& verified, ReplayOptions options,
                             uint64_t bytes) {
  if (verified.limit->card_full) {
    options.capacity = bytes;
  } else {
    options.allocator.allowed_memory_maximum = bytes;
  }
  const memory::ReplayResult result = memory::replay(*verified.program, options);
  if (!result.replay_limitations.empty()) return std::nullopt;
  return !result.oom;
}

Outcome within_limit(const VerifiedRecording& verified, const ReplayOptions& options) {
  if (survives(verified, options, verified.limit->at_least) == true) return Outcome::survives;
  if (survives(verified, options, verified.limit->below - 1) == false) return Outcome::dies;
  return Outcome::open;
}

void run_settings(const VerifiedRecording& verified, const memory::Settings& settings,
                  WhatIf& out) {
  ReplayOptions options = options_for(verified, settings);
  if (verified.limit) out.within_limit = within_limit(verified, options);
  std::vector<SegmentEvent> log;
  out.result = memory::replay(*verified.program, options, &log);
  out.reserved = reserved_bytes(log, *verified.program);
}

uint64_t peak(const WhatIf& what_if) { return what_if.result.stats.reserved_bytes.peak; }

}  // namespace

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::survives:
      return "survives";
    case Outcome::dies:
      return "dies";
    case Outcome::open:
      return "open";
  }
  return "?";
}

std::vector<WhatIf> what_ifs(const VerifiedRecording& verified) {
  std::vector<WhatIf> out;
  std::vector<memory::Settings> settings;
  const auto add = [&](std::string text, const memory::Settings& parsed, bool as_recorded) {
    WhatIf what_if;
    what_if.settings = std::move(text);
    what_if.as_recorded = as_recorded;
    out.push_back(std::move(what_if));
    settings.push_back(parsed);
  };
  add(verified.settings, verified.recording.settings, true);
  for (const std::string_view text : memory::usual_settings()) {
    if (text == verified.settings) continue;
    const auto parsed = memory::parse_allocator_settings(text, verified.recording.version);
    if (parsed) add(std::string(text), *parsed, false);  // a version may not know the key
  }
  in_parallel(out.size(), verified.event_count() / k_settings_curves_events_per_thread,
              [&](size_t i) { run_settings(verified, settings[i], out[i]); });
  std::stable_sort(out.begin() + 1, out.end(),
                   [](const WhatIf& a, const WhatIf& b) { return peak(a) < peak(b); });
  return out;
}

}  // namespace cufit::analysis
