// SPDX-License-Identifier: Apache-2.0
#include "memory/what_if.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <tuple>

#include "base/format.h"

namespace cufit::memory {
namespace {

// One per span of versions in which the model behaves alike, newest first.
constexpr uint32_t k_spans[] = {14, 12, 11, 10, 8, 4, 0};

// The newest minor version that writes such a file. What a version adds to the file is always
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
  // Exactness first, then how far it goes.
  auto key() const {
    return std::tuple(verification.exact(), verification.segment_events_matched,
                      verification.addresses_matched);
  }
};

Result<Reading> read_as(const Snapshot& snapshot, const Program& program,
                        const VersionProfile& version) {
  Reading reading;
  reading.version = version;
  CUFIT_TRY(settings, recorded_settings(snapshot, version));
  reading.settings = std::move(settings);
  ReplayOptions options;
  options.allocator.settings = reading.settings;
  options.allocator.version = version;
  reading.verification = verify(program, options, &reading.block_bytes);
  return reading;
}

// The version that was asked for, or the newest that fits the file and repeats it exactly, or the
// nearest.
Result<Reading> best_reading(const Snapshot& snapshot, const Program& program,
                             const std::optional<VersionProfile>& version) {
  if (version) return read_as(snapshot, program, *version);
  const uint32_t newest = newest_minor(snapshot);
  std::optional<Reading> best;
  std::optional<Error> refused;
  std::optional<uint32_t> before;
  for (const uint32_t span : k_spans) {
    const uint32_t minor = std::min(span, newest);
    if (minor == before || (best && best->verification.exact())) continue;
    before = minor;
    Result<Reading> reading = read_as(snapshot, program, version_profile(2, minor));
    if (!reading) {
      if (!refused) refused = reading.error();
    } else if (!best || reading->key() > best->key()) {
      best = std::move(*reading);
    }
  }
  if (!best) return *refused;
  return std::move(*best);
}

std::optional<RecordedLimit> recorded_limit(const Snapshot& snapshot, const Study& study) {
  const std::optional<OutOfMemory>& oom = study.verification.result.oom;
  if (!oom) return std::nullopt;
  const Trace& trace = snapshot.traces[study.device];
  const TraceEvent& row = snapshot.events[trace.first + oom->event];
  RecordedLimit limit;
  limit.at_least = std::max(oom->reserved, study.verification.result.stats.reserved_bytes.peak);
  limit.below = std::max(oom->reserved + oom->tried, limit.at_least + 1);
  if (row.action == Action::oom && row.address != k_absent && row.address < oom->tried) {
    limit.card_full = true;
    limit.at_least = std::max(limit.at_least, oom->reserved + row.address);
    limit.below = limit.at_least + 1;
  }
  return limit;
}

ReplayOptions options_of(const Study& study, const Question& question, const Settings& settings) {
  ReplayOptions options;
  options.allocator.settings = settings;
  options.allocator.version = study.recording.version;
  options.allocator.allowed_memory_maximum = question.allowed;
  options.capacity = question.capacity.value_or(0);
  if (question.total_memory) options.allocator.total_memory = *question.total_memory;
  return options;
}

}  // namespace

uint32_t busiest_device(const Snapshot& snapshot) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < snapshot.traces.size(); ++i)
    if (snapshot.traces[i].count > snapshot.traces[best].count) best = i;
  return best;
}

Result<Study> study_of(const Snapshot& snapshot, uint32_t device,
                       const std::optional<VersionProfile>& version) {
  if (device >= snapshot.traces.size() || snapshot.traces[device].count == 0)
    return fail(Code::unsupported,
                format("the snapshot has no trace of device {}: recording was off, or the "
                       "snapshot was written without it",
                       device));
  Study study;
  study.device = device;
  CUFIT_TRY(recording, recorded_events(snapshot, device));
  study.recording = std::move(recording);
  study.program = compile_program(study.recording);
  CUFIT_TRY(reading, best_reading(snapshot, study.program, version));
  study.recording.version = reading.version;
  study.recording.settings = std::move(reading.settings);
  study.verification = std::move(reading.verification);
  study.block_bytes = std::move(reading.block_bytes);
  study.settings = settings_text(study.recording.settings);
  if (snapshot.settings && snapshot.settings->conf && !snapshot.settings->conf->empty())
    study.settings = *snapshot.settings->conf;
  study.limit = recorded_limit(snapshot, study);
  return study;
}

Result<std::vector<Answer>> ask(const Study& study, std::span<const Question> questions,
                                const std::function<void(size_t done)>& progress) {
  std::vector<Answer> answers;
  std::vector<ReplayOptions> options;
  for (const Question& question : questions) {
    Result<Settings> settings =
        parse_allocator_settings(question.settings, study.recording.version);
    if (!settings) return std::move(settings.error()).in(format("`{}`", question.settings));
    options.push_back(options_of(study, question, *settings));
    answers.push_back({question, {}});
  }
  std::atomic<size_t> next = 0;
  size_t done = 0;
  std::mutex telling;
  const auto work = [&] {
    for (size_t i = next++; i < answers.size(); i = next++) {
      answers[i].result = replay(study.program, options[i]);
      const std::lock_guard lock(telling);
      ++done;
      if (progress) progress(done);
    }
  };
  // A thread costs more than a short replay.
  const size_t long_work = study.program.ops.size() * questions.size() / 500'000;
  const size_t helpers = std::min<size_t>(
      {long_work, questions.size(), std::max(1u, std::thread::hardware_concurrency())});
  std::vector<std::thread> threads;
  for (size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return answers;
}

bool better(const Answer& a, const Answer& b) {
  const auto key = [](const Answer& x) {
    const DeviceStats& stats = x.result.stats;
    // Of runs that died, the one that came further.
    const uint64_t left = x.result.oom ? UINT64_MAX - x.result.oom->event : 0;
    return std::tuple(left, stats.reserved_bytes.peak, stats.num_alloc_retries,
                      stats.cuda_mallocs + stats.maps);
  };
  return key(a) < key(b);
}

}  // namespace cufit::memory
