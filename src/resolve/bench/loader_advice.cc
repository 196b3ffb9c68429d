// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/loader_advice.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace cufit::resolve {
namespace {

using formats::LoaderAlone;
using formats::LoaderAnswer;

// A loader that is alone has all CPUs; beside a step it is slower by some.
constexpr double k_head_room = 0.9;
constexpr double k_waits = 0.1;         // part of the loop's time that counts as waiting
constexpr double k_as_fast = 1.05;      // of more workers that no longer help
constexpr double k_watched_enough = 6;  // batches that tell how long the loop takes
constexpr uint64_t k_prefetch = 2;      // of torch, a worker
constexpr uint64_t k_most_workers = 64;

const LoaderAlone* own_of(const LoaderAnswer& answer) {
  for (const LoaderAlone& one : answer.alone)
    if (one.workers == answer.num_workers && one.seconds) return &one;
  return nullptr;
}

// Seconds of the loop a batch. Without workers a batch is made while the device waits; workers make it beside the step.
double loop_seconds(const LoaderAlone& one, double step) {
  return one.workers == 0 ? *one.seconds + step : std::max(*one.seconds / k_head_room, step);
}

// The fewest workers with which the loop is about as fast as it can be.
const LoaderAlone* best_of(const LoaderAnswer& answer, double step) {
  double least = INFINITY;
  const LoaderAlone* best = nullptr;
  for (const LoaderAlone& one : answer.alone)
    if (one.seconds && one.error.empty()) least = std::min(least, loop_seconds(one, step));
  for (const LoaderAlone& one : answer.alone) {
    const bool good =
        one.seconds && one.error.empty() && loop_seconds(one, step) <= least * k_as_fast;
    if (good && (best == nullptr || one.workers < best->workers)) best = &one;
  }
  return best;
}

uint64_t prefetch_of(const LoaderAnswer& answer) {
  return std::max(answer.prefetch_factor.value_or(k_prefetch), k_prefetch);
}

// The loop as it was seen takes no longer than the step alone: the device never waits, whatever the host does meanwhile. Its
// first batches come of what workers had made before, and say nothing.
bool keeps_up(const LoaderAnswer& answer, double step) {
  const double count = static_cast<double>(answer.watched_batches);
  const double ahead =
      static_cast<double>(answer.num_workers) * static_cast<double>(prefetch_of(answer));
  if (count < std::max(k_watched_enough, 2 * ahead)) return false;
  return answer.wait_seconds + answer.work_seconds <= k_as_fast * step * count;
}

// Part of an epoch that passes until workers have made its first batch.
double start_share(const LoaderAnswer& answer, const LoaderAlone& own, double step) {
  if (answer.num_workers == 0 || answer.persistent_workers || !answer.batches ||
      *answer.batches == 0 || !own.first_seconds)
    return 0;
  const double rest = static_cast<double>(*answer.batches) * std::max(step, *own.seconds);
  return *own.first_seconds / (*own.first_seconds + rest);
}

void add_arguments(const LoaderAnswer& answer, const LoaderHost& host, LoaderAdvice& out) {
  using Verdict = LoaderAdvice::Verdict;
  const uint64_t workers = out.workers.value_or(answer.num_workers);
  // Memory of the device cannot be pinned, and what is no tensor is not.
  out.pin_memory =
      answer.cuda && !answer.pin_memory && !answer.batch_on_device && answer.batch_bytes > 0;
  // Waiting in the midst of an epoch does not come of workers that start.
  out.persistent_workers =
      workers > 0 && !answer.persistent_workers && out.verdict != Verdict::unsteady;
  if (workers > 0 && out.verdict == Verdict::unsteady)
    out.prefetch = 2 * prefetch_of(answer);
  else if (workers > 0 && answer.num_workers > 0 && answer.prefetch_factor == 1)
    out.prefetch = k_prefetch;
  out.may_repeat_samples = answer.iterable && workers > 1 && answer.num_workers <= 1;
  // What workers have made and the program has not taken lies in /dev/shm.
  const double bytes = static_cast<double>(answer.batch_bytes) * static_cast<double>(workers) *
                       static_cast<double>(out.prefetch.value_or(prefetch_of(answer))) *
                       static_cast<double>(answer.processes);
  out.shm_bytes = static_cast<uint64_t>(std::min(bytes, 1e18));
  out.shm_is_small = host.shm_bytes && out.shm_bytes > *host.shm_bytes;
}

bool feeds(const LoaderAlone& one, double step) {
  return one.workers == 0 ? *one.seconds <= (k_as_fast - 1) * step : *one.seconds <= step;
}

LoaderAdvice::Verdict verdict_of(const LoaderAnswer& answer, const LoaderAlone& own,
                                 const LoaderAlone& best, const LoaderAdvice& so_far) {
  using Verdict = LoaderAdvice::Verdict;
  const double step = so_far.step_seconds;
  const bool fed = keeps_up(answer, step) || (feeds(own, step) && so_far.waited <= k_waits);
  if (fed) return start_share(answer, own, step) > k_waits ? Verdict::restarts : Verdict::fed;
  const bool better = loop_seconds(best, step) * k_as_fast < loop_seconds(own, step);
  if (!feeds(better ? best : own, step)) return Verdict::host_bound;
  if (better) return Verdict::more;
  return so_far.waited > k_waits ? Verdict::unsteady : Verdict::fed;
}

}  // namespace

LoaderAdvice advise(const LoaderAnswer& answer, const LoaderHost& host) {
  using Verdict = LoaderAdvice::Verdict;
  LoaderAdvice out;
  const double loop = answer.wait_seconds + answer.work_seconds;
  if (loop > 0) out.waited = answer.wait_seconds / loop;
  const LoaderAlone* const own = own_of(answer);
  if (own == nullptr || !answer.step_seconds || *answer.step_seconds <= 0) return out;
  out.loader_seconds = out.best_seconds = *own->seconds;
  out.step_seconds = *answer.step_seconds;
  out.start_seconds = own->first_seconds.value_or(0);
  const LoaderAlone* const best = best_of(answer, out.step_seconds);
  if (best == nullptr) return out;
  out.verdict = verdict_of(answer, *own, *best, out);
  if (out.verdict == Verdict::fed) return out;
  const bool better =
      loop_seconds(*best, out.step_seconds) * k_as_fast < loop_seconds(*own, out.step_seconds);
  if (better && (out.verdict == Verdict::more || out.verdict == Verdict::host_bound)) {
    out.workers = best->workers;
    out.best_seconds = *best->seconds;
  }
  add_arguments(answer, host, out);
  return out;
}

std::string loader_arguments(const LoaderAdvice& advice) {
  std::vector<std::string> words;
  if (advice.workers) words.push_back(format("num_workers={}", *advice.workers));
  if (advice.pin_memory) words.emplace_back("pin_memory=True");
  if (advice.persistent_workers) words.emplace_back("persistent_workers=True");
  if (advice.prefetch) words.push_back(format("prefetch_factor={}", *advice.prefetch));
  return join(words, ", ");
}

std::vector<uint64_t> worker_counts(const LoaderHost& host) {
  uint64_t most = host.cpus.value_or(8);
  if (host.cpu_limit)
    most = std::min(most, static_cast<uint64_t>(std::max(std::ceil(*host.cpu_limit), 1.0)));
  most = std::min(most, k_most_workers);
  std::vector<uint64_t> out = {0};
  for (uint64_t count = 1; count < most; count *= 2) out.push_back(count);
  out.push_back(most);
  return out;
}

}  // namespace cufit::resolve
