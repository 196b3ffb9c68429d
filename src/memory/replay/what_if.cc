// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/what_if.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/parallel.h"
#include "memory/replay/replay_elision.h"

namespace cufit::memory {
namespace {

constexpr size_t k_what_if_ops_per_thread = 100'000;  // a thread costs more than a short replay

ReplayOptions options_of(const VerifiedRecording& verified, const Question& question,
                         const Settings& settings) {
  ReplayOptions options;
  options.allocator.settings = settings;
  options.allocator.version = verified.recording.version;
  options.allocator.allowed_memory_maximum = question.allowed;
  // No bytes left are a bound as well.
  if (question.capacity) options.capacity = std::max<uint64_t>(1, *question.capacity);
  if (question.total_memory) options.allocator.total_memory = *question.total_memory;
  options.with_reasons = question.with_reasons;
  options.left_out = question.left_out;
  options.without_pools = question.without_pools;
  options.known_reasons = reasons_of(verified);
  Settings& taken = options.allocator.settings;
  // A part of a card that nobody named is no limit that could be replayed.
  if (taken.per_process_memory_fraction && !question.total_memory) {
    if (!question.allowed) options.known_reasons.push_back("memory_fraction");
    taken.per_process_memory_fraction.reset();
  }
  // Garbage is collected below a limit only.
  if (!question.allowed && !taken.per_process_memory_fraction)
    taken.garbage_collection_threshold = 0;
  return options;
}

std::optional<uint64_t> limit_of(const Question& question, const ReplayOptions& options) {
  const std::optional<uint64_t> allowed = allowed_memory(options.allocator);
  if (!allowed || !question.capacity) return allowed ? allowed : question.capacity;
  return std::min(*allowed, *question.capacity);
}

}  // namespace

bool asks_for_recorded(const VerifiedRecording& verified, const Question& question) {
  const Result<Settings> settings =
      parse_allocator_settings(question.settings, verified.recording.version);
  if (!settings) return false;
  ReplayOptions options = options_of(verified, question, *settings);
  drop_idle_settings(*verified.program, options.allocator.settings);
  return is_recorded_run(verified, options);
}

Result<std::shared_ptr<Inquiry>> Inquiry::make(std::shared_ptr<const VerifiedRecording> verified,
                                               std::span<const Question> questions) {
  auto inquiry = std::make_shared<Inquiry>();
  for (const Question& question : questions) {
    Result<Settings> settings =
        parse_allocator_settings(question.settings, verified->recording.version);
    if (!settings) return std::move(settings.error()).in(format("`{}`", question.settings));
    inquiry->options_.push_back(options_of(*verified, question, *settings));
    drop_idle_settings(*verified->program, inquiry->options_.back().allocator.settings);
    inquiry->answers_.push_back({question, {}, limit_of(question, inquiry->options_.back())});
  }
  inquiry->first_ = first_alike(inquiry->options_);
  for (size_t i = 0; i < questions.size(); ++i)
    if (inquiry->first_[i] == i) inquiry->distinct_.push_back(i);
  inquiry->verified_ = std::move(verified);
  return inquiry;
}

void Inquiry::work(const std::function<void(size_t done)>& progress) {
  std::unique_lock lock(mutex_);
  while (begun_ < distinct_.size()) {
    const size_t at = distinct_[begun_++];
    lock.unlock();
    std::exception_ptr failure;
    try {
      answers_[at].result = result_of(*verified_, options_[at]);
    } catch (...) {  // of memory that is not there; told to whoever wants the answers
      failure = std::current_exception();
    }
    lock.lock();
    ++ended_;
    if (failure) failure_ = failure;
    done_ += static_cast<size_t>(std::count(first_.begin(), first_.end(), at));
    if (progress) progress(done_);
    finished_.notify_all();
  }
}

std::vector<Answer> Inquiry::answers() {
  work();
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return ended_ == distinct_.size(); });
  if (failure_) std::rethrow_exception(failure_);
  std::vector<Answer> all = answers_;
  for (size_t i = 0; i < all.size(); ++i)
    if (first_[i] != i) all[i].result = all[first_[i]].result;
  return all;
}

Result<std::vector<Answer>> ask(const VerifiedRecording& verified,
                                std::span<const Question> questions,
                                const std::function<void(size_t done)>& progress) {
  // The recording outlives the inquiry.
  CUFIT_TRY(inquiry,
            Inquiry::make({std::shared_ptr<const VerifiedRecording>(), &verified}, questions));
  const size_t worth = verified.program->ops.size() * questions.size() / k_what_if_ops_per_thread;
  const size_t threads = std::max<size_t>(1, std::min(inquiry->replays(), worth));
  in_parallel(threads, threads, [&](size_t) { inquiry->work(progress); });
  return inquiry->answers();
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
