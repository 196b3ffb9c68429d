// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_plan.h"

#include <algorithm>
#include <random>
#include <set>

#include "fit/pack/fleet_engine.h"
#include "fit/pack/fleet_jobs.h"

namespace cufit::pack {
namespace {

constexpr uint64_t k_gib = uint64_t{1} << 30;

Gpu fleet_gpu(uint64_t gib, uint32_t index = 0, const std::string& table = "") {
  Gpu out;
  out.name = "GPU " + std::to_string(index) + ", " + (table.empty() ? "card" : table);
  out.table = table;
  out.visible = std::to_string(index);
  out.index = index;
  out.usable = gib * k_gib;
  return out;
}
Machine machine_of(const std::string& name, const std::vector<uint64_t>& gib) {
  Machine out;
  out.name = name;
  for (size_t i = 0; i < gib.size(); ++i)
    out.gpus.push_back(fleet_gpu(gib[i], static_cast<uint32_t>(i)));
  return out;
}
Job fleet_job(uint64_t gib, uint32_t gpus = 1) {
  Job out;
  out.name = "job";
  out.size.allocator = gib * k_gib;
  out.gpus = gpus;
  return out;
}
FleetPlan fleet_plan_of(const FleetQuestion& question) {
  Result<FleetPlan> plan = make_fleet_plan(question, knowledge::Knowledge::builtin());
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
  return std::move(*plan);
}

// Laws of every plan: no card holds more than it has, a job has all of its GPUs, each another one,
// of one machine; what was placed and what was not are all jobs.
void expect_lawful(const FleetQuestion& question, const FleetPlan& plan) {
  std::vector<std::vector<uint64_t>> load(question.machines.size());
  for (size_t i = 0; i < load.size(); ++i) load[i].assign(question.machines[i].gpus.size(), 0);
  std::vector<bool> seen(question.jobs.size(), false);
  size_t used = 0;
  for (const FleetPlaced& placed : plan.placed) {
    EXPECT_FALSE(seen[placed.job]);
    seen[placed.job] = true;
    const Job& job = question.jobs[placed.job];
    EXPECT_EQ(placed.gpus.size(), job.gpus);
    std::set<size_t> distinct(placed.gpus.begin(), placed.gpus.end());
    EXPECT_EQ(distinct.size(), job.gpus);
    for (const size_t gpu : placed.gpus) {
      uint64_t& sum = load[placed.machine][gpu];
      used += sum == 0 ? 1 : 0;
      sum += *taken_on(job, question.machines[placed.machine].gpus[gpu]);
      EXPECT_LE(sum, question.machines[placed.machine].gpus[gpu].usable);
    }
  }
  for (const size_t job : plan.unplaced) {
    EXPECT_FALSE(seen[job]);
    seen[job] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
  EXPECT_EQ(plan.used, used);
  EXPECT_LE(plan.placed.size(), plan.most_placed);
  if (plan.placed.size() == plan.most_placed) {
    EXPECT_LE(plan.fewest_used, plan.used);
  }
}

// All assignments, one after another.
struct BestFleet {
  size_t placed = 0, used = 0;
};
void try_all_fleets(const FleetQuestion& question, size_t job,
                    std::vector<std::vector<uint64_t>>& left, size_t placed, BestFleet& best) {
  if (job == question.jobs.size()) {
    size_t used = 0;
    for (size_t m = 0; m < left.size(); ++m)
      for (size_t g = 0; g < left[m].size(); ++g)
        used += left[m][g] != question.machines[m].gpus[g].usable ? 1 : 0;
    if (placed > best.placed || (placed == best.placed && used < best.used)) best = {placed, used};
    return;
  }
  try_all_fleets(question, job + 1, left, placed, best);
  const Job& asked = question.jobs[job];
  for (size_t m = 0; m < left.size(); ++m)
    for (uint32_t set = 1; set < 1u << left[m].size(); ++set) {
      if (static_cast<uint32_t>(__builtin_popcount(set)) != asked.gpus) continue;
      bool fits = true;
      for (size_t g = 0; g < left[m].size(); ++g)
        if ((set >> g & 1) != 0) fits = fits && *asked.size.allocator <= left[m][g];
      if (!fits) continue;
      for (size_t g = 0; g < left[m].size(); ++g)
        if ((set >> g & 1) != 0) left[m][g] -= *asked.size.allocator;
      try_all_fleets(question, job + 1, left, placed + 1, best);
      for (size_t g = 0; g < left[m].size(); ++g)
        if ((set >> g & 1) != 0) left[m][g] += *asked.size.allocator;
    }
}

FleetQuestion random_fleet(std::mt19937& random, size_t machines, size_t gpus, size_t jobs) {
  FleetQuestion out;
  const auto up_to = [&](uint64_t most) { return random() % most + 1; };
  for (size_t i = 0; i < machines; ++i) {
    std::vector<uint64_t> gib;
    const size_t count = up_to(gpus);
    for (size_t g = 0; g < count; ++g) gib.push_back(random() % 2 == 0 ? 40 : 24);
    out.machines.push_back(machine_of("n" + std::to_string(i), gib));
  }
  const size_t count = up_to(jobs);
  for (size_t i = 0; i < count; ++i)
    out.jobs.push_back(fleet_job(up_to(28), static_cast<uint32_t>(random() % 3 == 0 ? 2 : 1)));
  return out;
}

TEST(FleetPlan, SmallFleetsAreAsGoodAsAllAssignmentsTogether) {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    const FleetQuestion question = random_fleet(random, 2, 3, 5);
    const FleetPlan plan = fleet_plan_of(question);
    expect_lawful(question, plan);
    std::vector<std::vector<uint64_t>> left;
    for (const Machine& machine : question.machines) {
      left.emplace_back();
      for (const Gpu& gpu : machine.gpus) left.back().push_back(gpu.usable);
    }
    BestFleet best;
    try_all_fleets(question, 0, left, 0, best);
    EXPECT_EQ(plan.placed.size(), best.placed) << round;
    EXPECT_EQ(plan.used, best.used) << round;
    EXPECT_TRUE(plan.optimal) << round;
    EXPECT_EQ(plan.most_placed, best.placed) << round;
    EXPECT_EQ(plan.fewest_used, best.used) << round;
  }
}

TEST(FleetPlan, LargeFleetsExceedNoCard) {
  std::mt19937 random(11);
  for (const Goal goal : {Goal::fewest, Goal::headroom}) {
    FleetQuestion question = random_fleet(random, 60, 8, 400);
    question.goal = goal;
    expect_lawful(question, fleet_plan_of(question));
  }
}

// More than the exact search is made for, and still a proof where sizes alone are one.
TEST(FleetPlan, WhatCannotBeBetterIsProvedInALargeFleet) {
  FleetQuestion question;
  for (int i = 0; i < 40; ++i)
    question.machines.push_back(machine_of("n" + std::to_string(i), {40, 40, 40, 40}));
  for (int i = 0; i < 300; ++i) question.jobs.push_back(fleet_job(20));
  const FleetPlan plan = fleet_plan_of(question);
  expect_lawful(question, plan);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.used, 150u);
}

// Of as many GPUs the smallest, and few large ones before many small ones.
TEST(FleetPlan, LargeFleetsOpenFewGpus) {
  FleetQuestion question;
  for (int i = 0; i < 50; ++i) {
    question.machines.push_back(machine_of("large" + std::to_string(i), {140, 140}));
    question.machines.push_back(machine_of("small" + std::to_string(i), {48, 48}));
  }
  for (int i = 0; i < 280; ++i) question.jobs.push_back(fleet_job(35));
  question.jobs.push_back(fleet_job(30));
  const FleetPlan plan = fleet_plan_of(question);
  expect_lawful(question, plan);
  EXPECT_EQ(plan.used, 71u);  // 70 with four jobs each, one with the last
  EXPECT_TRUE(plan.optimal);
  for (const FleetPlaced& placed : plan.placed)
    if (placed.job == 280) {
      EXPECT_EQ(question.machines[placed.machine].gpus[0].usable, 48 * k_gib);
    }
}

// More than the search is made for, and sums do not rule out what none finds.
TEST(FleetPlan, WhatMayBeBetterIsSaid) {
  constexpr uint64_t k_sizes[] = {11, 17, 23, 29, 31};
  size_t unproved = 0;
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u}) {
    std::mt19937 random(seed);
    FleetQuestion question;
    for (int i = 0; i < 60; ++i)
      question.machines.push_back(machine_of("n" + std::to_string(i), {60, 60}));
    for (int i = 0; i < 300; ++i) question.jobs.push_back(fleet_job(k_sizes[random() % 5]));
    const FleetPlan plan = fleet_plan_of(question);
    expect_lawful(question, plan);
    EXPECT_EQ(plan.optimal,
              plan.placed.size() == plan.most_placed && plan.used == plan.fewest_used);
    unproved += plan.optimal ? 0 : 1;
  }
  EXPECT_GT(unproved, 0u);
}

// Where there is no room for all, the most that can be placed are, and on no more GPUs than these need.
TEST(FleetPlan, AFullFleetIsProvedFull) {
  FleetQuestion question;
  for (int i = 0; i < 70; ++i)
    question.machines.push_back(machine_of("n" + std::to_string(i), {40}));
  for (int i = 0; i < 100; ++i) question.jobs.push_back(fleet_job(30));
  const FleetPlan plan = fleet_plan_of(question);
  expect_lawful(question, plan);
  EXPECT_EQ(plan.placed.size(), 70u);
  EXPECT_EQ(plan.most_placed, 70u);
  EXPECT_TRUE(plan.optimal);
}

TEST(FleetPlan, AJobOfSeveralGpusIsNeverDivided) {
  FleetQuestion question;
  question.machines = {machine_of("a", {40}), machine_of("b", {40})};
  question.jobs = {fleet_job(20, 2)};
  const FleetPlan plan = fleet_plan_of(question);
  ASSERT_EQ(plan.unplaced.size(), 1u);
  EXPECT_TRUE(plan.optimal);
  question.machines.push_back(machine_of("c", {24, 40, 24}));
  expect_lawful(question, fleet_plan_of(question));
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 1u);
}

TEST(FleetPlan, TheGpusOfAJobAreOfOneModel) {
  FleetQuestion question;
  Machine mixed;
  mixed.name = "a";
  mixed.gpus = {fleet_gpu(40, 0, "L40S"), fleet_gpu(40, 1, "H100 NVL")};
  question.machines = {mixed};
  question.jobs = {fleet_job(20, 2)};
  EXPECT_EQ(fleet_plan_of(question).unplaced.size(), 1u);
  EXPECT_FALSE(fit_on_machine(question.jobs[0], mixed).fits);
  question.machines[0].gpus.push_back(fleet_gpu(40, 2, "L40S"));
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 1u);
}

TEST(FleetPlan, SharesBoundJobsOfSeveralGpus) {
  FleetQuestion question;
  for (int i = 0; i < 100; ++i)
    question.machines.push_back(machine_of("n" + std::to_string(i), {40, 40}));
  for (int i = 0; i < 101; ++i) question.jobs.push_back(fleet_job(30, 2));
  const FleetPlan plan = fleet_plan_of(question);
  expect_lawful(question, plan);
  EXPECT_EQ(plan.placed.size(), 100u);
  EXPECT_EQ(plan.most_placed, 100u);
}

TEST(FleetEngine, KubernetesGivesWholeGpus) {
  FleetQuestion question;
  question.machines = {machine_of("a", {40, 40})};
  question.jobs = {fleet_job(10), fleet_job(10), fleet_job(10)};
  offer_by(Engine::kubernetes, {}, question);
  const FleetPlan plan = fleet_plan_of(question);
  expect_lawful(question, plan);
  EXPECT_EQ(plan.placed.size(), 2u);
}

TEST(FleetEngine, AGpuInUseIsNotGivenAsAWhole) {
  FleetQuestion question;
  question.machines = {machine_of("a", {30})};
  question.machines[0].gpus[0].in_use = 10 * k_gib;
  question.jobs = {fleet_job(10)};
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 1u);
  offer_by(Engine::kubernetes, {}, question);
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 0u);
}

// 8 shards of 10 GiB: three jobs of 11 GiB take two each.
TEST(FleetEngine, ShardsAreWhole) {
  FleetQuestion question;
  question.machines = {machine_of("a", {80})};
  for (int i = 0; i < 5; ++i) question.jobs.push_back(fleet_job(11));
  const std::vector<formats::SlurmNodeGres> slurm =
      formats::parse_slurm_nodes("NodeName=a Gres=gpu:h200:1,shard:8");
  offer_by(Engine::slurm, slurm, question);
  const FleetPlan plan = fleet_plan_of(question);
  expect_lawful(question, plan);
  EXPECT_EQ(plan.placed.size(), 4u);
  uint64_t shards = 0;
  for (const FleetPlaced& placed : plan.placed)
    shards += shards_for(question.machines[0], question.machines[0].gpus[0], placed.bytes);
  EXPECT_EQ(shards, 8u);
}

TEST(FleetEngine, WhatSlurmGaveAwayIsNotPlannedWith) {
  FleetQuestion question;
  question.machines = {machine_of("a", {80, 80})};
  question.machines[0].gpus[0].in_use = k_gib;
  question.jobs = {fleet_job(11)};
  offer_by(Engine::slurm,
           formats::parse_slurm_nodes("NodeName=a Gres=gpu:h200:2 GresUsed=gpu:h200:1(IDX:0)"),
           question);
  ASSERT_EQ(question.machines[0].gpus.size(), 1u);
  EXPECT_EQ(question.machines[0].gpus[0].index, 1u);
  EXPECT_EQ(question.machines[0].given_away, 1u);
  EXPECT_EQ(slurm_type(question.machines[0], question.machines[0].gpus[0]), "h200");
}

TEST(FleetEngine, ATypeIsFoundByTheGpusName) {
  Machine machine = machine_of("a", {});
  machine.types = {"h100", "h200", "a100_3g.40gb"};
  EXPECT_EQ(slurm_type(machine, fleet_gpu(80, 0, "H200")), "h200");
  EXPECT_EQ(slurm_type(machine, fleet_gpu(80, 0, "L40S")), "");
  Gpu instance = fleet_gpu(40);
  instance.is_instance = true;
  instance.profile = "3g.40gb";
  EXPECT_EQ(slurm_type(machine, instance), "a100_3g.40gb");
}

TEST(FleetJobs, WhatNodesLackIsSaidOnceForAll) {
  const std::vector<Machine> machines = {machine_of("a", {24}), machine_of("b", {80}),
                                         machine_of("c", {24}), machine_of("d", {})};
  const JobNodes told = nodes_for_job(fleet_job(30), machines, {{"e", "silent", "no route"}});
  EXPECT_EQ(told.nodes, std::vector<std::string>{"b"});
  ASSERT_EQ(told.cannot.size(), 3u);
  EXPECT_EQ(told.cannot[0].nodes, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(told.cannot[0].why, JobCannot::Why::too_small);
  EXPECT_EQ(told.cannot[0].needs, 30 * k_gib);
  EXPECT_EQ(told.cannot[0].most, 24 * k_gib);
}

}  // namespace
}  // namespace cufit::pack
