// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/pack_plan.h"

#include <random>

namespace cufit::pack {
namespace pack_plan_test {

constexpr uint64_t k_gib = uint64_t{1} << 30, k_mib = uint64_t{1} << 20;

Gpu gpu_of(uint64_t gib, uint64_t context_mib, const std::string& table = "") {
  Gpu out;
  out.name = out.table = table;
  out.visible = "0";
  out.usable = gib * k_gib;
  out.context = context_mib * k_mib;
  return out;
}
Job job_of(uint64_t gib) {
  Job out;
  out.name = "job";
  out.size.allocator = gib * k_gib;
  return out;
}
Plan plan_of(const Question& question) {
  Result<Plan> plan = make_plan(question, knowledge::Knowledge::builtin());
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
  return std::move(*plan);
}

TEST(PackPlan, EachProcessHasAContext) {
  Question question;
  question.gpus = {gpu_of(40, 512)};
  question.jobs = {job_of(20), job_of(20)};
  // 20 + 20 GiB are all of the card; two contexts are not there.
  EXPECT_EQ(plan_of(question).unplaced.size(), 1u);
  question.gpus[0].usable += 1023 * k_mib;
  EXPECT_EQ(plan_of(question).unplaced.size(), 1u);
  question.gpus[0].usable += k_mib;
  const Plan plan = plan_of(question);
  EXPECT_TRUE(plan.unplaced.empty());
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.gpus[0].left, 0u);
  EXPECT_EQ(plan.gpus[0].jobs[0].context, 512 * k_mib);
}

TEST(PackPlan, ATotalIsTakenAsItIs) {
  Question question;
  question.gpus = {gpu_of(40, 512)};
  question.jobs = {job_of(20), job_of(20)};
  for (Job& job : question.jobs) {
    job.size.total = job.size.allocator;
    job.size.allocator.reset();
  }
  const Plan plan = plan_of(question);
  EXPECT_TRUE(plan.unplaced.empty());
  EXPECT_EQ(plan.gpus[0].jobs[0].context, 0u);
}

// `cufit run --vram` takes no limit below the context of the card.
TEST(PackPlan, ATotalIsMoreThanAContext) {
  Question question;
  question.gpus = {gpu_of(40, 512)};
  question.jobs = {job_of(1)};
  question.jobs[0].size.allocator.reset();
  question.jobs[0].size.total = 300 * k_mib;
  EXPECT_EQ(plan_of(question).gpus[0].jobs[0].bytes, 513 * k_mib);
}

TEST(PackPlan, APredictionForTheCardGoesFirst) {
  Question question;
  question.gpus = {gpu_of(24, 300, "GeForce RTX 4090"), gpu_of(24, 300, "L4")};
  Job job = job_of(30);
  job.size.on_cards = {{"L4", 20 * k_gib, k_gib}};
  question.jobs = {job};
  const Plan plan = plan_of(question);
  ASSERT_EQ(plan.gpus[1].jobs.size(), 1u);
  EXPECT_EQ(plan.gpus[1].jobs[0].bytes, 21 * k_gib);
  EXPECT_EQ(plan.gpus[1].jobs[0].context, k_gib);
}

TEST(PackPlan, WhatHasNoPlaceSaysByHowMuch) {
  Question question;
  question.gpus = {gpu_of(24, 0), gpu_of(40, 0)};
  question.jobs = {job_of(41), job_of(24), job_of(40), job_of(10)};
  const Plan plan = plan_of(question);
  ASSERT_EQ(plan.unplaced.size(), 2u);
  EXPECT_EQ(plan.unplaced[0].job, 0u);
  EXPECT_TRUE(plan.unplaced[0].too_large);
  EXPECT_EQ(plan.unplaced[0].missing, k_gib);
  EXPECT_EQ(plan.unplaced[0].gpu, 1u);
  EXPECT_EQ(plan.unplaced[1].job, 2u);  // the smaller ones are more
  EXPECT_FALSE(plan.unplaced[1].too_large);
  EXPECT_GT(plan.unplaced[1].missing, 0u);
}

// Quotas are whole MiB, rounded up, and never more together than a card has.
TEST(PackPlan, TheAssignmentNeverExceedsACard) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 300; ++round) {
    Question question;
    question.goal = round % 3 == 0 ? Goal::headroom : Goal::fewest;
    question.divide = question.goal == Goal::fewest && round % 2 == 0;
    const char* tables[] = {"H100 SXM5 80GB", "A30", "L4", "RTX PRO 6000 Blackwell Server", "B200"};
    const size_t gpus = 1 + random() % 5;
    for (size_t i = 0; i < gpus; ++i) {
      Gpu gpu = gpu_of(20 + random() % 70, random() % 900, tables[random() % 5]);
      gpu.usable += random() % k_gib;
      question.gpus.push_back(gpu);
    }
    const size_t jobs = 1 + random() % 20;
    for (size_t i = 0; i < jobs; ++i) {
      Job job;
      job.size.allocator = 1 + random() % (30 * k_gib);
      question.jobs.push_back(job);
    }
    const Plan plan = plan_of(question);
    size_t placed = 0;
    for (size_t gpu = 0; gpu < gpus; ++gpu) {
      const PackedGpu& packed = plan.gpus[gpu];
      uint64_t sum = 0, taken = 0;
      for (const PlacedJob& job : packed.jobs) {
        ++placed;
        sum += job.bytes;
        EXPECT_EQ(job.bytes % k_mib, 0u);
        const uint64_t wanted = *question.jobs[job.job].size.allocator + question.gpus[gpu].context;
        EXPECT_GE(job.bytes, wanted);
        EXPECT_LT(job.bytes, wanted + k_mib);
        if (!packed.divided) continue;
        ASSERT_TRUE(job.instance);
        EXPECT_LE(job.bytes, uint64_t{job.instance->profile->usable} * k_mib);
        const uint64_t mask = ((uint64_t{1} << job.instance->profile->units) - 1)
                              << job.instance->start;
        EXPECT_EQ(taken & mask, 0u);
        taken |= mask;
      }
      EXPECT_EQ(packed.left, packed.usable - sum);
      if (!packed.divided) {
        EXPECT_LE(sum, question.gpus[gpu].usable);
      }
    }
    EXPECT_EQ(placed + plan.unplaced.size(), jobs);
  }
}

TEST(PackPlan, SizesBeyondReasonAreNoOverflow) {
  Question question;
  question.gpus = {gpu_of(80, 500, "H100 SXM5 80GB")};
  for (const uint64_t bytes :
       {UINT64_MAX, UINT64_MAX - 5, k_most_job_bytes, k_most_job_bytes + 1}) {
    Job job;
    job.size.allocator = bytes;
    question.jobs.push_back(job);
    job.size.on_cards = {{"H100 SXM5 80GB", bytes, bytes}};
    question.jobs.push_back(job);
    Job whole;
    whole.size.total = bytes;
    question.jobs.push_back(whole);
  }
  const Plan plan = plan_of(question);
  EXPECT_EQ(plan.unplaced.size(), question.jobs.size());
  for (const Unplaced& job : plan.unplaced) EXPECT_TRUE(job.too_large);
}

TEST(PackPlan, NoMoreThanItIsMadeFor) {
  Question question;
  question.gpus.assign(k_most_gpus + 1, gpu_of(80, 0));
  EXPECT_FALSE(make_plan(question, knowledge::Knowledge::builtin()));
  question.gpus.assign(1, gpu_of(80, 0));
  question.jobs.assign(k_most_jobs + 1, job_of(1));
  EXPECT_FALSE(make_plan(question, knowledge::Knowledge::builtin()));
  question.jobs.assign(k_most_jobs, job_of(1));
  const Plan plan = plan_of(question);
  EXPECT_EQ(plan.gpus[0].jobs.size(), 80u);
  question.divide = true;
  question.goal = Goal::headroom;
  EXPECT_FALSE(make_plan(question, knowledge::Knowledge::builtin()));
}

}  // namespace pack_plan_test
}  // namespace cufit::pack
