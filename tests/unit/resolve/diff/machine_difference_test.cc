// SPDX-License-Identifier: Apache-2.0
#include "resolve/diff/machine_difference.h"

#include <gtest/gtest.h>

#include "host/files/recording.h"
#include "resolve/diff/lock_difference.h"
#include "support/places.h"

namespace cufit::resolve {
namespace machine_difference_test {

template <class T>
Fact<T> seen(T value, std::string where = "x") {
  return known<T>(std::move(value), SourceKind::file, std::move(where));
}

facts::Facts recorded(const std::string& name) {
  const host::RealHost host;
  Result<facts::Facts> facts =
      host::load_facts(host, cufit::test::source_dir() + "/tests/machines/" + name + "/facts.json");
  EXPECT_TRUE(facts) << name;
  return facts ? std::move(*facts) : facts::Facts{};
}

MachineSide side(facts::Facts facts) {
  return machine_side(std::move(facts), knowledge::Knowledge::builtin());
}

const FactChange* find(const FactComparison& all, std::string_view field,
                       std::string_view key = "") {
  for (const FactChange& change : all.changes)
    if (change.field == field && (key.empty() || (!change.keys.empty() && change.keys[0] == key)))
      return &change;
  return nullptr;
}

FactComparison compare(const facts::Facts& a, const facts::Facts& b,
                       const std::vector<PackageChange>& packages = {}) {
  FactSide left{list_machine(a), true, false}, right{list_machine(b), true, false};
  if (!a.envs.empty())
    for (ListedFact& fact : list_env(a.envs[0])) left.facts.push_back(std::move(fact));
  if (!b.envs.empty())
    for (ListedFact& fact : list_env(b.envs[0])) right.facts.push_back(std::move(fact));
  return compare_facts(left, right, packages);
}

TEST(MachineDifference, ACauseOfTheWorseSideComesFirstWithTheFactItRestsOn) {
  const MachineSide a = side(recorded("rtx4090-driver535-cu121"));
  const MachineSide b = side(recorded("a800-driver470-cu121"));
  const MachineDifference there = compare_machines(a, b);
  EXPECT_EQ(there.worse, MachineDifference::Worse::b);
  ASSERT_FALSE(there.findings.empty());
  EXPECT_EQ(there.findings[0].where, FindingChange::Where::only_b);
  EXPECT_EQ(there.findings[0].b->id, "driver_too_old");
  ASSERT_EQ(there.findings[0].facts.size(), 1u);
  const FactChange& driver = there.facts.changes[there.findings[0].facts[0]];
  EXPECT_EQ(driver.field, "kernel.version");
  EXPECT_EQ(driver.a, "535.183.01");
  EXPECT_EQ(driver.b, "470.129.06");
  // The other way round the same finding is A's.
  const MachineDifference back = compare_machines(b, a);
  EXPECT_EQ(back.worse, MachineDifference::Worse::a);
  EXPECT_EQ(back.findings[0].where, FindingChange::Where::only_a);
  EXPECT_EQ(back.findings[0].a->id, "driver_too_old");
}

TEST(MachineDifference, AShadowingVariableIsNamedBesideTheFilesItBringsIn) {
  const MachineSide a = side(recorded("h200-recorded"));
  const MachineSide b = side(recorded("h200-recorded-other-cudnn"));
  const MachineDifference there = compare_machines(a, b);
  ASSERT_EQ(there.findings.size(), 1u);
  EXPECT_EQ(there.findings[0].b->id, "cuda_libs_shadowed");
  ASSERT_EQ(there.findings[0].facts.size(), 2u);
  const FactChange& variable = there.facts.changes[there.findings[0].facts[0]];
  EXPECT_EQ(variable.field, "variables[]");
  EXPECT_EQ(variable.keys, std::vector<std::string>{"LD_LIBRARY_PATH"});
  EXPECT_EQ(there.facts.changes[there.findings[0].facts[1]].field, "env.loads[]");
  EXPECT_TRUE(there.packages.empty());
}

TEST(MachineDifference, AMachineAgainstItselfDoesNotDiffer) {
  for (const char* name : {"h200-recorded", "gtx1080-and-rtx3090-cu128", "driver-hangs"}) {
    const MachineSide one = side(recorded(name));
    const MachineDifference there = compare_machines(one, one);
    EXPECT_FALSE(there.differs) << name;
    EXPECT_TRUE(there.facts.changes.empty()) << name;
    EXPECT_TRUE(there.findings.empty()) << name;
  }
}

TEST(MachineDifference, AFindingOfAnotherEnvironmentDoesNotGoBeforeOneOfThis) {
  const MachineSide a = side(recorded("rtx4090-driver535-cu121"));
  facts::Facts facts = recorded("numpy2-in-second-env");
  facts.system.shm_bytes = seen<uint64_t>(64u << 20, "/dev/shm");
  facts.system.container = seen<std::string>("docker", "/.dockerenv");
  const MachineSide b = side(std::move(facts));
  const MachineDifference there = compare_machines(a, b);
  ASSERT_GE(there.findings.size(), 2u);
  EXPECT_EQ(there.findings.front().b->id, "shm_too_small");
  EXPECT_EQ(there.findings.back().b->subject, "env /home/user/old");
}

TEST(FactDifference, WhatAnyTwoMachinesDifferInDoesNotMatter) {
  facts::Facts a = recorded("h200-recorded"), b = a;
  b.system.boot_id = seen<std::string>("other");
  b.system.ram_available_bytes = seen<uint64_t>(1);
  b.nvml.gpus[0].uuid = seen<std::string>("GPU-other");
  b.nvml.gpus[0].temperature_c = seen<uint32_t>(91);
  b.nvml.gpus[0].memory_free_bytes = seen<uint64_t>(5);
  b.system.cpu_model = seen<std::string>("other");
  for (const FactChange& change : compare(a, b).changes)
    EXPECT_EQ(change.weight, Weight::expected) << change.field;
  EXPECT_FALSE(compare_machines(side(a), side(b)).differs);
}

TEST(FactDifference, WhatWasNotReadIsNoDifference) {
  facts::Facts a = recorded("h200-recorded"), b = a;
  b.kernel.version = missing<std::string>(WhyNot::no_permission, SourceKind::file, "x", "denied");
  const FactComparison there = compare(a, b);
  EXPECT_EQ(find(there, "kernel.version"), nullptr);
  ASSERT_EQ(there.one_sided.size(), 1u);
  EXPECT_EQ(there.one_sided[0].field, "kernel.version");
  EXPECT_TRUE(there.one_sided[0].in_a);
  EXPECT_EQ(there.one_sided[0].why, WhyNot::no_permission);
  EXPECT_TRUE(there.one_sided[0].decides);
  // "Not there" is an answer.
  b.kernel.version = missing<std::string>(WhyNot::not_present, SourceKind::file, "x");
  const FactComparison absent = compare(a, b);
  const FactChange* change = find(absent, "kernel.version");
  ASSERT_NE(change, nullptr);
  EXPECT_FALSE(change->b);
}

TEST(FactDifference, AListOfAPastedTextLacksNothing) {
  facts::Facts a = recorded("h200-recorded"), b = a;
  b.variables.clear();
  FactSide left{list_machine(a), true, false}, right{list_machine(b), true, false};
  EXPECT_NE(find(compare_facts(left, right, {}), "variables[]", "LD_LIBRARY_PATH"), nullptr);
  right.complete = false;
  const FactComparison told = compare_facts(left, right, {});
  EXPECT_EQ(find(told, "variables[]"), nullptr);
  EXPECT_FALSE(told.one_sided.empty());
}

TEST(MachineDifference, WhatFollowsFromAnotherCauseOnTheOtherSideIsShared) {
  MachineSide a = side(recorded("rtx4090-driver535-cu121")), b = a;
  a.report.findings = {{"driver_too_old", checks::Severity::error, "machine"}};
  a.report.findings[0].consequences = {"ptx_newer_than_driver"};
  b.report.findings = {{"ptx_newer_than_driver", checks::Severity::warning, "machine"}};
  const MachineDifference there = compare_machines(a, b);
  ASSERT_EQ(there.findings.size(), 1u);
  EXPECT_EQ(there.findings[0].a->id, "driver_too_old");
  ASSERT_EQ(there.shared.size(), 1u);
  EXPECT_EQ(there.shared[0].b->id, "ptx_newer_than_driver");
}

TEST(MachineDifference, PackagesThatATextDoesNotNameAreNotGone) {
  facts::Facts facts = recorded("h200-recorded");
  const MachineSide a = side(facts);
  std::vector<facts::Distribution>& told = *facts.envs[0].distributions.value;
  told.resize(3);
  told[1].version = "0.0.1";
  EXPECT_GT(compare_machines(a, side(facts)).packages.size(), 10u);
  facts.origin = "dump";
  const MachineDifference there = compare_machines(a, side(facts));
  ASSERT_EQ(there.packages.size(), 1u);
  EXPECT_EQ(there.packages[0].b, "0.0.1");
}

TEST(FactDifference, EqualChangesOfSeveralGpusAreOne) {
  facts::Facts a = recorded("gtx1080-and-rtx3090-cu128"), b = a;
  for (facts::NvmlGpu& gpu : b.nvml.gpus) gpu.compute_mode = seen<std::string>("prohibited");
  const FactComparison there = compare(a, b);
  const FactChange* change = find(there, "nvml.gpus[].compute_mode");
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->keys, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(change->weight, Weight::matters);
}

TEST(FactDifference, AFileOfAChangedPackageIsImplied) {
  facts::Facts a = recorded("h200-recorded"), b = a;
  for (facts::LoadedLibrary& library : b.envs[0].loads)
    if (library.name == "libcurand.so.10") library.package = "nvidia-curand 10.9.9";
  const FactComparison alone = compare(a, b);
  ASSERT_NE(find(alone, "env.loads[]", "libcurand.so.10"), nullptr);
  EXPECT_EQ(find(alone, "env.loads[]", "libcurand.so.10")->weight, Weight::matters);
  const FactComparison listed = compare(a, b, {{"nvidia-curand", "10.4.0.35", "10.9.9"}});
  EXPECT_EQ(find(listed, "env.loads[]", "libcurand.so.10")->weight, Weight::implied);
}

TEST(FactDifference, TheDriverGoesBeforeTorchAndTorchBeforeTheDistribution) {
  const FactComparison there = compare(recorded("h200-recorded"), recorded("rtx5090-cu126"));
  std::vector<std::string> order;
  for (const FactChange& change : there.changes)
    if (change.weight == Weight::matters) order.push_back(to_string(change.topic));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end(), [](const auto& x, const auto& y) {
    static const std::vector<std::string> k_topics = {"driver",    "gpu",       "torch",
                                                      "python",    "platform",  "cuda_libraries",
                                                      "variables", "container", "other"};
    return std::find(k_topics.begin(), k_topics.end(), x) <
           std::find(k_topics.begin(), k_topics.end(), y);
  }));
  EXPECT_EQ(order.front(), "driver");
  EXPECT_EQ(order.back(), "other");
}

TEST(PackageDifference, ListsTorchAndNvidiaFirst) {
  const std::vector<PackageChange> changes = compare_packages(
      {{"numpy", "1.26"}, {"torch", "2.6.0"}, {"zipp", "1"}, {"same", "1"}},
      {{"nvidia-nccl-cu12", "2.2"}, {"numpy", "2.1"}, {"torch", "2.7.1"}, {"same", "1"}});
  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[0].name, "torch");
  EXPECT_EQ(changes[1].name, "nvidia-nccl-cu12");
  EXPECT_EQ(changes[1].a, "");
  EXPECT_EQ(changes[2].name, "numpy");
  EXPECT_EQ(changes[3].b, "");
}

TEST(PackageDifference, CondaBuildsOfOneVersionDiffer) {
  facts::PythonEnv env;
  facts::Distribution conda, pip;
  conda.name = pip.name = "pytorch";
  conda.version = pip.version = "2.1.0";
  conda.kind = "conda-meta";
  conda.tag = "py3.11_cuda11.8_0";
  pip.kind = "dist-info";
  env.distributions = seen(std::vector<facts::Distribution>{conda, pip});
  ASSERT_EQ(packages_of(env).size(), 1u);
  EXPECT_EQ(packages_of(env)[0].version, "2.1.0 (py3.11_cuda11.8_0)");
}

TEST(PackageDifference, PackagesOfAPylockWithAndWithoutVersions) {
  formats::Pylock lock;
  formats::PylockPackage torch, own;
  torch.name = "torch";
  torch.version = "2.7.1";
  own.name = "own";
  own.vcs = "git https://example.org/own";
  lock.packages = {torch, own, torch};
  const std::vector<PackageVersion> packages = packages_of(lock);
  ASSERT_EQ(packages.size(), 2u);
  EXPECT_EQ(packages[0].version, "git https://example.org/own");
  EXPECT_EQ(packages[1].version, "2.7.1");
}

TEST(LockDifference, SaysWhichClassesCameWentAndChanged) {
  LockFile a, b;
  a.requirements = b.requirements = {"torch"};
  LockClass one;
  one.name = "cu126";
  one.wheel.torch = "2.7.1";
  one.wheel.tag = "cu126";
  one.python = "3.12";
  one.sha256 = "aa";
  a.classes = {one};
  LockClass old = one;
  old.name = "cu118";
  a.classes.push_back(old);
  b.classes = {one};
  EXPECT_TRUE(compare_locks(a, b, {}, {}).differs);
  b.classes[0].wheel.torch = "2.8.0";
  b.classes[0].sha256 = "bb";
  b.targets = {"RTX 4090,535"};
  const LockDifference there =
      compare_locks(a, b, {{{"torch", "2.7.1"}}, {}}, {{{"torch", "2.8.0"}}});
  ASSERT_EQ(there.fields.size(), 1u);
  EXPECT_EQ(there.fields[0].field, "targets");
  ASSERT_EQ(there.classes.size(), 2u);
  EXPECT_EQ(there.classes[0].name, "cu126");
  ASSERT_EQ(there.classes[0].fields.size(), 2u);
  EXPECT_EQ(there.classes[0].fields[0].field, "torch");
  EXPECT_TRUE(there.classes[0].packages_known);
  ASSERT_EQ(there.classes[0].packages.size(), 1u);
  EXPECT_EQ(there.classes[1].name, "cu118");
  EXPECT_EQ(there.classes[1].b, nullptr);
  EXPECT_FALSE(compare_locks(a, a, {}, {}).differs);
}

}  // namespace machine_difference_test
}  // namespace cufit::resolve
