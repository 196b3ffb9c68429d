// SPDX-License-Identifier: Apache-2.0
#include "analysis/what_if.h"

#include <algorithm>

#include "base/parallel.h"

namespace cufit::analysis {
namespace {

using memory::ReplayOptions;
using memory::SegmentEvent;
using memory::Study;

constexpr size_t k_events_per_thread = 100'000;  // a thread costs more than a short replay

ReplayOptions options_for(const Study& study, const memory::Settings& settings) {
  ReplayOptions options;
  options.allocator.settings = settings;
  options.allocator.version = study.recording.version;
  options.allocator.settings.per_process_memory_fraction.reset();  // of a card that nobody named
  options.known_reasons = memory::reasons_of(study);
  return options;
}

// No answer where the replay says why it may be wrong.
std::optional<bool> survives(const Study& study, ReplayOptions options, uint64_t bytes) {
  if (study.limit->card_full) {
    options.capacity = bytes;
  } else {
    options.allocator.allowed_memory_maximum = bytes;
  }
  const memory::ReplayResult result = memory::replay(*study.program, options);
  if (!result.not_modelled.empty()) return std::nullopt;
  return !result.oom;
}

Outcome within_limit(const Study& study, const ReplayOptions& options) {
  if (survives(study, options, study.limit->at_least) == true) return Outcome::survives;
  if (survives(study, options, study.limit->below - 1) == false) return Outcome::dies;
  return Outcome::open;
}

void run(const Study& study, const memory::Settings& settings, WhatIf& out) {
  ReplayOptions options = options_for(study, settings);
  if (study.limit) out.within_limit = within_limit(study, options);
  std::vector<SegmentEvent> log;
  out.result = memory::replay(*study.program, options, &log);
  out.reserved = reserved_bytes(log, *study.program);
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

std::vector<WhatIf> what_ifs(const Study& study) {
  std::vector<WhatIf> out;
  std::vector<memory::Settings> settings;
  const auto add = [&](std::string text, const memory::Settings& parsed, bool as_recorded) {
    WhatIf what_if;
    what_if.settings = std::move(text);
    what_if.as_recorded = as_recorded;
    out.push_back(std::move(what_if));
    settings.push_back(parsed);
  };
  add(study.settings, study.recording.settings, true);
  for (const std::string_view text : memory::usual_settings()) {
    if (text == study.settings) continue;
    const auto parsed = memory::parse_allocator_settings(text, study.recording.version);
    if (parsed) add(std::string(text), *parsed, false);  // a version may not know the key
  }
  in_parallel(out.size(), study.event_count() / k_events_per_thread,
              [&](size_t i) { run(study, settings[i], out[i]); });
  std::stable_sort(out.begin() + 1, out.end(),
                   [](const WhatIf& a, const WhatIf& b) { return peak(a) < peak(b); });
  return out;
}

}  // namespace cufit::analysis
