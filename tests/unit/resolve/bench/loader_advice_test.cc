// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/loader_advice.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace loader_advice_test {

using Verdict = LoaderAdvice::Verdict;

// A loader of `workers` of its own, alone at these seconds a batch by count, beside a step.
formats::LoaderAnswer answer(uint64_t workers, double step,
                             const std::vector<std::pair<uint64_t, double>>& alone,
                             double waited = 0) {
  formats::LoaderAnswer out;
  out.num_workers = workers;
  out.persistent_workers = true;
  out.step_seconds = step;
  out.batch_bytes = 1 << 20;
  for (const auto& [count, seconds] : alone) {
    formats::LoaderAlone one;
    one.workers = count;
    one.seconds = seconds;
    out.alone.push_back(one);
  }
  out.wait_seconds = waited;
  out.work_seconds = 1 - waited;
  return out;
}

TEST(LoaderAdvice, WhatFeedsTheDeviceStays) {
  const LoaderAdvice advice = advise(answer(4, 0.1, {{4, 0.05}, {0, 0.2}, {8, 0.03}}), {});
  EXPECT_EQ(advice.verdict, Verdict::fed);
  EXPECT_EQ(loader_arguments(advice), "");
}

TEST(LoaderAdvice, TheFewestWorkersThatFeedItAreNamed) {
  const LoaderAdvice advice =
      advise(answer(1, 0.1, {{1, 0.4}, {0, 0.4}, {2, 0.2}, {4, 0.085}, {8, 0.05}}), {});
  EXPECT_EQ(advice.verdict, Verdict::more);
  EXPECT_EQ(advice.workers, 4u);
  EXPECT_EQ(loader_arguments(advice), "num_workers=4");
}

TEST(LoaderAdvice, AHostThatCannotFeedItIsSaid) {
  const LoaderAdvice advice = advise(answer(2, 0.01, {{2, 0.2}, {4, 0.1}, {8, 0.098}}), {});
  EXPECT_EQ(advice.verdict, Verdict::host_bound);
  EXPECT_EQ(advice.workers, 4u);  // twice as many are no faster
  EXPECT_EQ(advise(answer(4, 0.01, {{4, 0.1}, {8, 0.1}}), {}).workers, std::nullopt);
}

// In the program's own process even a quick batch is made while the device waits.
TEST(LoaderAdvice, WithoutWorkersTheDeviceWaits) {
  const LoaderAdvice advice = advise(answer(0, 0.1, {{0, 0.04}, {2, 0.03}, {4, 0.02}}, 0.3), {});
  EXPECT_EQ(advice.verdict, Verdict::more);
  EXPECT_EQ(advice.workers, 2u);
  EXPECT_EQ(advise(answer(0, 0.1, {{0, 0.001}, {2, 0.03}}), {}).verdict, Verdict::fed);
}

// Workers cost more than they bring where batches are tiny.
TEST(LoaderAdvice, FewerWorkersMayBeBetter) {
  const LoaderAdvice advice = advise(answer(8, 0.01, {{8, 0.05}, {2, 0.005}, {0, 0.001}}), {});
  EXPECT_EQ(advice.verdict, Verdict::more);
  EXPECT_EQ(advice.workers, 2u);
}

TEST(LoaderAdvice, WaitingBesideAFastLoaderIsSaid) {
  const LoaderAdvice advice = advise(answer(4, 0.1, {{4, 0.02}, {8, 0.01}}, 0.4), {});
  EXPECT_EQ(advice.verdict, Verdict::unsteady);
  EXPECT_EQ(advice.workers, std::nullopt);
}

// Batches as the program got them, that many at these seconds, of which a part was waiting.
formats::LoaderAnswer watched(formats::LoaderAnswer out, uint64_t count, double seconds,
                              double waited) {
  out.watched_batches = count;
  out.wait_seconds = static_cast<double>(count) * seconds * waited;
  out.work_seconds = static_cast<double>(count) * seconds * (1 - waited);
  return out;
}

// The host waits for a batch while the device still works on the one before: nothing is lost.
TEST(LoaderAdvice, ALoopThatTakesNoLongerThanTheStepIsFed) {
  const formats::LoaderAnswer without = answer(0, 0.1, {{0, 0.04}, {2, 0.03}});
  EXPECT_EQ(advise(watched(without, 20, 0.101, 0.4), {}).verdict, Verdict::fed);
  EXPECT_EQ(advise(watched(without, 20, 0.14, 0.3), {}).verdict, Verdict::more);
  const formats::LoaderAnswer some = answer(4, 0.1, {{4, 0.2}, {8, 0.05}});
  EXPECT_EQ(advise(watched(some, 16, 0.1, 0), {}).verdict, Verdict::fed);
  // So few may all have been made ahead.
  EXPECT_EQ(advise(watched(some, 15, 0.1, 0), {}).verdict, Verdict::more);
  EXPECT_EQ(advise(watched(without, 5, 0.1, 0.4), {}).verdict, Verdict::more);
}

// Within the noise of the step more workers may look better by a little.
TEST(LoaderAdvice, ALoaderThatJustFeedsAndWasNotWaitedForStays) {
  const formats::LoaderAnswer one = answer(4, 0.1, {{4, 0.097}, {8, 0.05}}, 0.02);
  EXPECT_EQ(advise(one, {}).verdict, Verdict::fed);
  EXPECT_EQ(advise(answer(4, 0.1, {{4, 0.097}, {8, 0.05}}, 0.3), {}).verdict, Verdict::more);
}

TEST(LoaderAdvice, WorkersThatStartEachEpochAreSaid) {
  formats::LoaderAnswer one = answer(4, 0.1, {{4, 0.05}, {8, 0.03}});
  one.persistent_workers = false;
  one.batches = 20;
  one.alone[0].first_seconds = 3;
  LoaderAdvice advice = advise(one, {});
  EXPECT_EQ(advice.verdict, Verdict::restarts);
  EXPECT_EQ(advice.start_seconds, 3);
  EXPECT_EQ(loader_arguments(advice), "persistent_workers=True");
  one.batches = 2000;
  EXPECT_EQ(advise(one, {}).verdict, Verdict::fed);
  one.batches = 20;
  one.persistent_workers = true;
  EXPECT_EQ(advise(one, {}).verdict, Verdict::fed);
}

TEST(LoaderAdvice, BurstsTakeMoreBatchesAhead) {
  formats::LoaderAnswer one = answer(4, 0.1, {{4, 0.02}}, 0.4);
  one.persistent_workers = false;
  EXPECT_EQ(loader_arguments(advise(one, {})), "prefetch_factor=4");
  one.prefetch_factor = 6;
  const LoaderAdvice advice = advise(one, {});
  EXPECT_EQ(loader_arguments(advice), "prefetch_factor=12");
  EXPECT_EQ(advice.shm_bytes, uint64_t{48} << 20);
}

// Memory of the device cannot be pinned: the program would end.
TEST(LoaderAdvice, WhatLiesOnTheDeviceIsNotPinned) {
  formats::LoaderAnswer one = answer(1, 0.1, {{1, 0.4}, {4, 0.05}});
  one.cuda = true;
  EXPECT_EQ(loader_arguments(advise(one, {})), "num_workers=4, pin_memory=True");
  one.batch_on_device = true;
  EXPECT_EQ(loader_arguments(advise(one, {})), "num_workers=4");
  one.batch_on_device = false;
  one.batch_bytes = 0;  // no tensors
  EXPECT_EQ(loader_arguments(advise(one, {})), "num_workers=4");
}

TEST(LoaderAdvice, AnIterableDatasetMayRepeatItsSamples) {
  formats::LoaderAnswer one = answer(0, 0.1, {{0, 0.4}, {4, 0.05}});
  EXPECT_FALSE(advise(one, {}).may_repeat_samples);
  one.iterable = true;
  EXPECT_TRUE(advise(one, {}).may_repeat_samples);
  one = answer(2, 0.1, {{2, 0.4}, {4, 0.05}});  // it has several already
  one.iterable = true;
  EXPECT_FALSE(advise(one, {}).may_repeat_samples);
}

// Each process of a job has batches on their way.
TEST(LoaderAdvice, ProcessesShareTheSharedMemory) {
  formats::LoaderAnswer one = answer(1, 0.1, {{1, 0.4}, {4, 0.05}});
  one.processes = 8;
  EXPECT_EQ(advise(one, {}).shm_bytes, uint64_t{64} << 20);
}

TEST(LoaderAdvice, ACountThatFailedIsNotNamed) {
  formats::LoaderAnswer one = answer(1, 0.1, {{1, 0.4}, {2, 0.2}, {8, 0.01}});
  one.alone[2].error = "RuntimeError: DataLoader worker is killed by signal: Bus error";
  const LoaderAdvice advice = advise(one, {});
  EXPECT_EQ(advice.workers, 2u);
  EXPECT_EQ(advice.verdict, Verdict::host_bound);
}

TEST(LoaderAdvice, ArgumentsSuitTheProgram) {
  formats::LoaderAnswer one = answer(0, 0.1, {{0, 0.4}, {4, 0.05}});
  one.cuda = true;
  one.persistent_workers = false;
  one.batch_bytes = uint64_t{32} << 20;
  LoaderHost host;
  host.shm_bytes = uint64_t{64} << 20;
  LoaderAdvice advice = advise(one, host);
  EXPECT_EQ(loader_arguments(advice), "num_workers=4, pin_memory=True, persistent_workers=True");
  EXPECT_EQ(advice.shm_bytes, uint64_t{256} << 20);
  EXPECT_TRUE(advice.shm_is_small);
  host.shm_bytes = uint64_t{1} << 30;
  EXPECT_FALSE(advise(one, host).shm_is_small);
}

TEST(LoaderAdvice, WithoutAllTimesNothingIsSaid) {
  formats::LoaderAnswer one = answer(2, 0.1, {{4, 0.05}});
  EXPECT_EQ(advise(one, {}).verdict, Verdict::not_told);
  one = answer(4, 0.1, {{4, 0.05}});
  one.step_seconds.reset();
  EXPECT_EQ(advise(one, {}).verdict, Verdict::not_told);
}

TEST(LoaderAdvice, CountsGoUpToTheCpus) {
  LoaderHost host;
  host.cpus = 6;
  EXPECT_EQ(worker_counts(host), (std::vector<uint64_t>{0, 1, 2, 4, 6}));
  host.cpu_limit = 1.5;
  EXPECT_EQ(worker_counts(host), (std::vector<uint64_t>{0, 1, 2}));
  host = {};
  host.cpus = 1;
  EXPECT_EQ(worker_counts(host), (std::vector<uint64_t>{0, 1}));
}

}  // namespace loader_advice_test
}  // namespace cufit::resolve
