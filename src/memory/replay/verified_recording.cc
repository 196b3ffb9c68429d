// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/verified_recording.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "memory/allocator/rounding.h"
#include "memory/allocator/settings_text.h"

namespace cufit::memory {
namespace {

// One per span of versions in which the model behaves alike, newest first: a flag that
// version_profile.cc turns on with a version begins one.
constexpr uint32_t k_spans[] = {14, 12, 11, 10, 8, 4, 0};

// The newest minor version, or one that behaves like it, that writes such a file. What a version adds to the file is always
// there from then on, so its absence bounds from above.
uint32_t newest_minor(const Snapshot& snapshot) {
  if (snapshot.only_segments) return 0;
  const bool pools_named = std::any_of(snapshot.contexts.begin(), snapshot.contexts.end(),
                                       [](const EventContext& c) { return c.pool.has_value(); });
  if (pools_named || !snapshot.host_traces.empty()) return 14;
  if (!snapshot.settings) return 2;
  return 13;
}

// What depends on the version: the settings' meaning and the model's rules.
struct Reading {
  VersionProfile version;
  Settings settings;
  Verification verification;
  std::vector<uint64_t> block_bytes;  // by number of the allocation
  bool settings_unread = false;       // the settings are only those that the file holds as fields
  // Exactness first, then how far it goes.
  auto key() const {
    return std::tuple(verification.exact(), verification.segment_events_matched,
                      verification.addresses_matched);
  }
};

Reading read_under(const Program& program, const VersionProfile& version, const Settings& settings,
                   const std::optional<uint64_t>& limit) {
  Reading reading;
  reading.version = version;
  reading.settings = settings;
  ReplayOptions options;
  options.allocator.settings = settings;
  options.allocator.version = version;
  options.allocator.allowed_memory_maximum = limit;
  reading.verification = verify(program, options, &reading.block_bytes);
  return reading;
}

// `limit`, in bytes, matters where garbage was collected below it; one that it cannot have been
// does not stand in the way.
Reading read_as(const Program& program, const VersionProfile& version, const Settings& settings,
                const std::optional<uint64_t>& limit) {
  if (!limit || settings.garbage_collection_threshold == 0)
    return read_under(program, version, settings, {});
  Reading below = read_under(program, version, settings, limit);
  if (below.verification.exact()) return below;
  Reading without = read_under(program, version, settings, {});
  return below.key() > without.key() ? below : without;
}

// The version that was asked for, or the newest that fits the file and repeats it exactly, or the
// nearest. A text of settings that no version reads is damaged or of a later torch.
Result<Reading> best_reading(const Snapshot& snapshot, const Program& program,
                             const std::optional<VersionProfile>& version,
                             const std::optional<uint64_t>& limit) {
  if (version) {
    CUFIT_TRY(settings, recorded_settings(snapshot, *version));
    return read_as(program, *version, settings, limit);
  }
  const uint32_t newest = newest_minor(snapshot);
  std::vector<Reading> tried;  // no two that behave alike
  std::optional<size_t> best;
  std::optional<Error> refused;
  std::optional<uint32_t> before;
  for (const uint32_t span : k_spans) {
    const uint32_t minor = std::min(span, newest);
    if (minor == before || (best && tried[*best].verification.exact())) continue;
    before = minor;
    const VersionProfile profile = version_profile(2, minor);
    Result<Settings> settings = recorded_settings(snapshot, profile);
    if (!settings) {
      if (!refused) refused = settings.error();
      continue;
    }
    // A program names the pool of each request and begins none, so that of all that differs between
    // versions only the settings' meaning reaches a replay.
    if (std::any_of(tried.begin(), tried.end(),
                    [&](const Reading& r) { return r.settings == *settings; }))
      continue;
    tried.push_back(read_as(program, profile, *settings, limit));
    if (!best || tried.back().key() > tried[*best].key()) best = tried.size() - 1;
  }
  if (best) return std::move(tried[*best]);
  if (!snapshot.settings) return *refused;
  Reading reading =
      read_as(program, version_profile(2, newest), settings_of_fields(*snapshot.settings), limit);
  reading.settings_unread = true;
  return reading;
}

// The settings' text as the program gave it, where the file has it.
std::string settings_as_written(const Snapshot& snapshot, const Settings& settings) {
  const bool has_text =
      snapshot.settings && snapshot.settings->conf && !snapshot.settings->conf->empty();
  return has_text ? *snapshot.settings->conf : settings_text(settings);
}

// What the program held at most: the model's figure, and where it did not follow no less than what
// was asked for.
uint64_t peak_allocated(const VerifiedRecording& verified) {
  const Program& program = *verified.program;
  const uint64_t by_model = verified.verification.result.stats.allocated_bytes.peak;
  if (verified.verification.exact()) return by_model;
  std::vector<uint64_t> sizes = verified.block_bytes;
  uint64_t now = 0;
  for (size_t i = 0; i < program.initial_blocks.size(); ++i) now += sizes[i];
  uint64_t peak = std::max(now, by_model);
  AllocationNumbers numbers(program);
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::malloc) {
      const uint32_t number = numbers.of(op);
      uint64_t& size = sizes[number];
      if (size == 0)
        size =
            round_size(program.sizes[number], verified.recording.settings.roundup_power2_divisions);
      peak = std::max(peak, now += size);
    } else if (op.kind == OpKind::free || op.kind == OpKind::free_requested) {
      now -= sizes[numbers.of(op)];
    }
  }
  return peak;
}

std::optional<RecordedLimit> recorded_limit(const Snapshot& snapshot,
                                            const VerifiedRecording& verified) {
  const std::optional<OutOfMemory>& oom = verified.verification.result.oom;
  if (!oom) return std::nullopt;
  const Trace& trace = snapshot.traces[verified.device];
  const TraceEvent& row = snapshot.events[trace.first + oom->event];
  RecordedLimit limit;
  limit.at_least = std::max(oom->reserved, verified.peak_reserved);
  limit.below = std::max(oom->reserved + oom->tried, limit.at_least + 1);
  if (row.action == Action::oom && row.address != k_absent && row.address < oom->tried) {
    limit.card_full = true;
    limit.at_least = std::max(limit.at_least, oom->reserved + row.address);
    limit.below = limit.at_least + 1;
  }
  return limit;
}

// None where it changed on the way: others share the card.
std::optional<RecordedLimit> limit_of_retries(const VerifiedRecording& verified) {
  const std::optional<uint64_t>& refused = verified.verification.refused;
  const bool lived = verified.retries && !verified.verification.result.oom;
  if (!lived || !refused || *refused <= verified.peak_reserved) return std::nullopt;
  return RecordedLimit{verified.peak_reserved, *refused, false};
}

}  // namespace

std::vector<std::string> reasons_of(const VerifiedRecording& verified) {
  std::vector<std::string> reasons;
  if (verified.settings_unread) reasons.push_back("settings_unread");
  if (verified.recording.settings.garbage_collection_threshold > 0 &&
      !verified.verification.exact())
    reasons.push_back("garbage_collected");
  return reasons;
}

bool ran_out(const Snapshot& snapshot, uint32_t device) {
  const Trace& trace = snapshot.traces[device];
  for (size_t i = trace.first; i < trace.first + trace.count; ++i)
    if (snapshot.events[i].action == Action::oom) return true;
  return false;
}

uint32_t busiest_device(const Snapshot& snapshot) {
  const auto key = [&](uint32_t device) {
    return std::pair(ran_out(snapshot, device), snapshot.traces[device].count);
  };
  uint32_t best = 0;
  for (uint32_t i = 1; i < snapshot.traces.size(); ++i)
    if (key(i) > key(best)) best = i;
  return best;
}

Result<VerifiedRecording> verify_recording(const Snapshot& snapshot, uint32_t device,
                                           const std::optional<VersionProfile>& version,
                                           const Meanwhile& meanwhile,
                                           const std::optional<uint64_t>& limit) {
  if (device >= snapshot.traces.size() || snapshot.traces[device].count == 0)
    return fail(Code::unsupported,
                format("the snapshot has no trace of device {}: recording was off, or the "
                       "snapshot was written without it",
                       device));
  VerifiedRecording verified;
  verified.device = device;
  CUFIT_TRY(recording, recorded_events(snapshot, device));
  verified.recording = std::move(recording);
  // What the file suggests; requests are told from what the allocator did on its own by it.
  verified.recording.version = version.value_or(version_profile(2, newest_minor(snapshot)));
  const Result<Settings> settings = recorded_settings(snapshot, verified.recording.version);
  verified.recording.settings = settings ? *settings : settings_of_fields(*snapshot.settings);
  verified.program = std::make_shared<const Program>(compile_program(verified.recording));
  if (meanwhile && settings) {
    verified.settings = settings_as_written(snapshot, verified.recording.settings);
    meanwhile(verified);
  }
  CUFIT_TRY(reading, best_reading(snapshot, *verified.program, version, limit));
  verified.recording.version = reading.version;
  verified.recording.settings = std::move(reading.settings);
  verified.verification = std::move(reading.verification);
  verified.block_bytes = std::move(reading.block_bytes);
  verified.settings = reading.settings_unread
                          ? settings_text(verified.recording.settings)
                          : settings_as_written(snapshot, verified.recording.settings);
  verified.settings_unread = reading.settings_unread;
  if (verified.settings_unread) verified.settings_written = snapshot.settings->conf.value_or("");
  verified.peak_allocated = peak_allocated(verified);
  verified.peak_reserved = verified.program->recorded_peak;
  // A recording that leaves calls of segments out tells less than was held.
  if (verified.peak_reserved < verified.peak_allocated)
    verified.peak_reserved = verified.verification.result.stats.reserved_bytes.peak;
  verified.limit = recorded_limit(snapshot, verified);
  const bool may_collect = verified.recording.settings.garbage_collection_threshold > 0 && !limit;
  if (verified.verification.exact() && !verified.program->has_doubts && !may_collect)
    verified.retries = verified.verification.result.stats.num_alloc_retries;
  verified.met_limit = limit_of_retries(verified);
  return verified;
}

}  // namespace cufit::memory
