// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_plan.h"

#include <gtest/gtest.h>

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

SlurmCluster cluster_of(const std::string& text) {
  return {formats::parse_slurm_nodes(text), formats::parse_slurm_partitions(text)};
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
  offer_by(Engine::slurm, cluster_of("NodeName=a Gres=gpu:h200:1,shard:8"), question);
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
  offer_by(Engine::slurm, cluster_of("NodeName=a Gres=gpu:h200:2 GresUsed=gpu:h200:1(IDX:0)"),
           question);
  ASSERT_EQ(question.machines[0].gpus.size(), 1u);
  EXPECT_EQ(question.machines[0].gpus[0].index, 1u);
  EXPECT_EQ(question.machines[0].given_away, 1u);
  EXPECT_EQ(slurm_type(question.machines[0], question.machines[0].gpus[0]), "h200");
}

// What a type has, not what the node has: two GPUs of a node with four of two types.
TEST(FleetEngine, SlurmGivesNoMoreOfATypeThanItHas) {
  FleetQuestion question;
  Machine node;
  node.name = "a";
  node.gpus = {fleet_gpu(80, 0, "A100 SXM4 80GB"), fleet_gpu(80, 1, "A100 SXM4 80GB"),
               fleet_gpu(48, 2, "L40S"), fleet_gpu(48, 3, "L40S")};
  question.machines = {node};
  offer_by(Engine::slurm,
           cluster_of("NodeName=a Gres=gpu:a100:2,gpu:l40s:1 "
                      "GresUsed=gpu:a100:2(IDX:0-1),gpu:l40s:0(IDX:N/A)"),
           question);
  ASSERT_EQ(question.machines[0].gpus.size(), 1u);
  EXPECT_EQ(question.machines[0].gpus[0].table, "L40S");
  EXPECT_EQ(question.machines[0].given_away, 3u);
}

// Slurm has whole GPUs there and the node instances, or the other way round: neither can be asked for.
TEST(FleetEngine, AnInstanceIsAskedForByItsTypeAlone) {
  const auto left = [](const std::string& gres, bool is_instance) {
    FleetQuestion question;
    question.machines = {machine_of("a", {40})};
    question.machines[0].gpus[0].is_instance = is_instance;
    question.machines[0].gpus[0].profile = is_instance ? "3g.40gb" : "";
    offer_by(Engine::slurm, cluster_of("NodeName=a Gres=" + gres), question);
    return question.machines[0].gpus.size();
  };
  EXPECT_EQ(left("gpu:a100:1", true), 0u);
  EXPECT_EQ(left("gpu:a100_3g.40gb:1", true), 1u);
  EXPECT_EQ(left("gpu:1", true), 1u);
  EXPECT_EQ(left("gpu:a100_3g.40gb:1", false), 0u);
  EXPECT_EQ(left("gpu:a100:1", false), 1u);
}

TEST(FleetEngine, ANodeWithoutGpusInSlurmGivesNone) {
  FleetQuestion question;
  question.machines = {machine_of("a", {80}), machine_of("b", {80})};
  offer_by(Engine::slurm, cluster_of("NodeName=a Gres=(null)\n"), question);
  EXPECT_TRUE(question.machines[0].gpus.empty());
  EXPECT_EQ(question.machines[1].gpus.size(), 1u);  // nobody said anything of it
}

// 5 of the first GPU's 8 shards are taken; of the third nobody says how many are.
TEST(FleetEngine, ShardsOfOthersAreNotPlannedWith) {
  FleetQuestion question;
  question.machines = {machine_of("a", {80, 80})};
  for (int i = 0; i < 16; ++i) question.jobs.push_back(fleet_job(9));
  const std::string gres = "NodeName=a Gres=gpu:h200:2,shard:h200:16 GresUsed=gpu:h200:0(IDX:N/A),";
  offer_by(Engine::slurm, cluster_of(gres + "shard:h200:5(5/8,0/8)"), question);
  const FleetPlan plan = fleet_plan_of(question);
  expect_lawful(question, plan);
  EXPECT_EQ(plan.placed.size(), 3u + 8u);
  question.jobs = {fleet_job(9, 2)};
  question.jobs[0].whole = true;
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 0u);

  question.machines = {machine_of("a", {80, 80})};
  offer_by(Engine::slurm, cluster_of(gres + "shard:h200:1(IDX:1)"), question);
  ASSERT_EQ(question.machines[0].gpus.size(), 1u);
  EXPECT_EQ(question.machines[0].gpus[0].index, 0u);
  EXPECT_EQ(question.machines[0].given_away, 1u);
}

TEST(FleetEngine, APartitionIsNamedWhereTheDefaultOneHasNoSuchNode) {
  const std::string partitions =
      "PartitionName=all Default=YES State=UP\nPartitionName=big Default=NO State=UP\n"
      "PartitionName=old Default=NO State=INACTIVE\nPartitionName=low Default=NO State=UP\n";
  const auto named = [&](const std::string& of_node, const std::string& known) {
    FleetQuestion question;
    question.machines = {machine_of("a", {80})};
    offer_by(Engine::slurm,
             cluster_of("NodeName=a Gres=gpu:1 Partitions=" + of_node + " \n" + known), question);
    return question.machines[0].partitions;
  };
  EXPECT_EQ(named("all,big", partitions), "");
  EXPECT_EQ(named("old,big,low", partitions), "big,low");
  EXPECT_EQ(named("big", ""), "big");
  EXPECT_EQ(named("$(reboot)", ""), "");
}

TEST(FleetEngine, ANodeThatSlurmDrainsTakesNoJob) {
  std::vector<Machine> machines = {machine_of("a", {80}), machine_of("b", {80}),
                                   machine_of("c", {80})};
  const std::vector<MachineOut> out = take_out_by_slurm(
      cluster_of("NodeName=a Gres=gpu:1 State=IDLE+DRAIN Reason=x State=IDLE\n"
                 "NodeName=b Gres=gpu:1 State=IDLE+POWERED_DOWN\nNodeName=c State=DOWN*\n"),
      machines);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].why, "Slurm says IDLE+DRAIN");
  ASSERT_EQ(machines.size(), 1u);
  EXPECT_EQ(machines[0].name, "b");
}

Machine h200_node(const std::string& name, size_t gpus) {
  Machine out;
  out.name = name;
  for (uint32_t i = 0; i < gpus; ++i) out.gpus.push_back(fleet_gpu(139, i, "H200 SXM"));
  return out;
}

// --mig: seven instances of a GPU, however the engine gives what is not divided.
TEST(FleetEngine, AGpuThatIsGivenAsAWholeIsDividedAll) {
  ASSERT_TRUE(mig_card("H200 SXM", knowledge::Knowledge::builtin()));
  for (const Engine engine : {Engine::kubernetes, Engine::slurm}) {
    FleetQuestion question;
    question.divide = true;
    question.machines = {h200_node("a", 1)};
    for (int i = 0; i < 7; ++i) question.jobs.push_back(fleet_job(10));
    offer_by(engine, {}, question);
    const FleetPlan plan = fleet_plan_of(question);
    EXPECT_EQ(plan.placed.size(), 7u);
    for (const FleetPlaced& placed : plan.placed) EXPECT_TRUE(placed.on[0].instance);
  }
}

TEST(FleetEngine, AJobOfSeveralGpusGetsNoInstances) {
  FleetQuestion question;
  question.machines = {h200_node("a", 2)};
  for (Gpu& gpu : question.machines[0].gpus) {
    gpu.is_instance = true;
    gpu.profile = "3g.71gb";
  }
  question.jobs = {fleet_job(20, 2)};
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 0u);
  const JobNodes told = nodes_for_job(question.jobs[0], question.machines, {});
  ASSERT_EQ(told.cannot.size(), 1u);
  EXPECT_EQ(told.cannot[0].why, JobCannot::Why::instances);

  // Of GPUs that could be divided it has two as they are, and others divide the third.
  question.machines = {h200_node("a", 3)};
  question.divide = true;
  question.jobs = {fleet_job(20, 2), fleet_job(10), fleet_job(10)};
  const FleetPlan plan = fleet_plan_of(question);
  ASSERT_EQ(plan.placed.size(), 3u);
  EXPECT_EQ(plan.used, 3u);
  for (const FleetPlaced& placed : plan.placed)
    for (const PlacedJob& on : placed.on)
      EXPECT_EQ(on.instance.has_value(), question.jobs[placed.job].gpus == 1);
  size_t divided = 0;
  for (const PackedGpu& gpu : plan.plan.gpus) divided += gpu.divided ? 1 : 0;
  EXPECT_EQ(divided, 1u);
}

// What runs on a GPU would stop, and its MIG mode does not change meanwhile.
TEST(FleetEngine, AGpuInUseIsNotDivided) {
  FleetQuestion question;
  question.machines = {h200_node("a", 1)};
  question.machines[0].gpus[0].in_use = 10 * k_gib;
  question.machines[0].gpus[0].usable = 120 * k_gib;
  question.divide = true;
  question.jobs = {fleet_job(10)};
  const FleetPlan plan = fleet_plan_of(question);
  ASSERT_EQ(plan.placed.size(), 1u);
  EXPECT_FALSE(plan.placed[0].on[0].instance);
}

// Equal in all but the profile, and no table has the card: still two models.
TEST(FleetPlan, EqualSizesAreNotOneModel) {
  FleetQuestion question;
  question.machines = {machine_of("a", {40, 40})};
  question.machines[0].gpus[0].name = "GPU 0, some card";
  question.machines[0].gpus[1].name = "GPU 1, another card";
  question.jobs = {fleet_job(20, 2)};
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 0u);
  question.machines[0].gpus[1].name = "GPU 1, some card";
  EXPECT_EQ(fleet_plan_of(question).placed.size(), 1u);
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
