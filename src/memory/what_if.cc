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

Result<Study> study_as(const Snapshot& snapshot, uint32_t device, const VersionProfile& version) {
  Study study;
  study.device = device;
  CUFIT_TRY(recording, recording_of(snapshot, device, version));
  study.recording = std::move(recording);
  study.program = compile_program(study.recording);
  ReplayOptions options;
  options.allocator.settings = study.recording.settings;
  options.allocator.version = version;
  study.verification = verify(study.program, options, &study.block_bytes);
  return study;
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
  std::optional<Study> best;
  if (version) {
    CUFIT_TRY(study, study_as(snapshot, device, *version));
    best = std::move(study);
  } else {
    const uint32_t newest = newest_minor(snapshot);
    std::optional<Error> refused;
    std::optional<uint32_t> before;
    for (const uint32_t span : k_spans) {
      const uint32_t minor = std::min(span, newest);
      if (minor == before || (best && best->verification.exact())) continue;
      before = minor;
      Result<Study> study = study_as(snapshot, device, version_profile(2, minor));
      if (!study) {
        if (!refused) refused = study.error();
        continue;
      }
      const auto key = [](const Study& s) {
        return std::tuple(s.verification.exact(), s.verification.segment_events_matched,
                          s.verification.addresses_matched);
      };
      if (!best || key(*study) > key(*best)) best = std::move(*study);
    }
    if (!best) return *refused;
  }
  best->settings = settings_text(best->recording.settings);
  if (snapshot.settings && snapshot.settings->conf && !snapshot.settings->conf->empty())
    best->settings = *snapshot.settings->conf;
  best->limit = recorded_limit(snapshot, *best);
  return std::move(*best);
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
