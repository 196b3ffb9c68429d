// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/quota_machine.h"

#include <gtest/gtest.h>

#include "memory/allocator/card_capacity.h"
#include "resolve/quota/backend.h"

namespace cufit::resolve {
namespace quota_machine_test {

template <class T>
Fact<T> fact(T value) {
  return known<T>(std::move(value), SourceKind::file, "");
}

facts::Facts machine(const std::string& driver, const std::string& kernel) {
  facts::Facts out;
  out.system.kernel = fact<std::string>(kernel);
  out.system.architecture = fact<std::string>("x86_64");
  out.system.cgroup = fact<std::string>("v2");
  out.system.root = fact(true);
  out.kernel.version = fact<std::string>(driver);
  facts::NvmlGpu gpu;
  gpu.name = fact<std::string>("NVIDIA H100 80GB HBM3");
  out.nvml.gpus = {gpu};
  return out;
}

QuotaMachine of(const facts::Facts& facts) {
  return quota_machine(facts, knowledge::Knowledge::builtin());
}

std::string why_of(const QuotaMachine& machine, QuotaBackend backend) {
  for (const BackendVerdict& one : quota_backends(machine, knowledge::Knowledge::builtin()))
    if (one.backend == backend)
      return one.state == BackendVerdict::State::not_possible ? one.why : "";
  return "?";
}

TEST(QuotaMachine, WhatTheFactsSay) {
  const QuotaMachine one = of(machine("615.10", "6.14.0-rc1"));
  EXPECT_EQ(one.driver->text(), "615.10");
  EXPECT_TRUE(one.root);
  EXPECT_TRUE(one.cgroup_v2);
  EXPECT_EQ(one.accounting, "dmem");
  ASSERT_EQ(one.gpus.size(), 1u);
  EXPECT_FALSE(one.gpus[0].mig_instance);
  EXPECT_EQ(why_of(one, QuotaBackend::kernel), "");
  EXPECT_EQ(of(machine("615.10", "5.15.0")).accounting, "misc");
}

// Of the controllers that were read; what the kernel's number promises is no more than a guess.
TEST(QuotaMachine, TheControllersThatAreThere) {
  const auto accounting = [](const char* controllers) {
    return quota_machine(machine("615.10", "6.14.0"), knowledge::Knowledge::builtin(), controllers)
        .accounting;
  };
  EXPECT_EQ(accounting("cpu io misc dmem\n"), "dmem");
  EXPECT_EQ(accounting("dmem misc"), "dmem");
  EXPECT_EQ(accounting("cpu misc pids\n"), "misc");
  EXPECT_EQ(accounting("cpu miscellany"), "");
  EXPECT_EQ(accounting(""), "");
}

TEST(QuotaMachine, WhatIsMissingIsNotAssumed) {
  const QuotaMachine none = of({});
  EXPECT_FALSE(none.driver);
  EXPECT_FALSE(none.root);
  EXPECT_EQ(none.accounting, "");
  EXPECT_TRUE(none.gpus.empty());
  EXPECT_EQ(why_of(none, QuotaBackend::kernel), "no_driver");
  facts::Facts old = machine("614.99.01", "6.14.0");
  EXPECT_EQ(why_of(of(old), QuotaBackend::kernel), "driver");
  facts::Facts v1 = machine("615.10", "6.14.0");
  v1.system.cgroup = fact<std::string>("v1");
  EXPECT_EQ(of(v1).accounting, "");
  EXPECT_EQ(why_of(of(v1), QuotaBackend::kernel), "cgroup");
  facts::Facts user = machine("615.10", "6.14.0");
  user.system.root = fact(false);
  EXPECT_EQ(why_of(of(user), QuotaBackend::kernel), "root");
}

TEST(QuotaMachine, AnInstanceOfMig) {
  facts::Facts facts = machine("615.10", "6.14.0");
  facts::CudaDevice device;
  device.uuid = fact<std::string>("MIG-aaaa");
  facts.cuda.devices = {device};
  const QuotaMachine one = of(facts);
  EXPECT_TRUE(one.gpus.at(0).mig_instance);
  EXPECT_EQ(why_of(one, QuotaBackend::kernel), "mig");
  facts.cuda.devices[0].uuid = fact<std::string>("GPU-aaaa");
  EXPECT_FALSE(of(facts).gpus.at(0).mig_instance);
}

// The first environment with torch is the one in use.
TEST(QuotaMachine, TorchAndItsFraction) {
  facts::Facts facts = machine("550.90.07", "6.1.0");
  facts.envs.resize(3);
  facts.envs[1].torch.version = fact<std::string>("2.10.0+cu128");
  facts.envs[2].torch.version = fact<std::string>("2.1.0");
  EXPECT_EQ(of(facts).torch->text(), "2.10.0");
  EXPECT_EQ(why_of(of(facts), QuotaBackend::torch), "");
  EXPECT_FALSE(of(facts).fraction_set);
  facts::EnvVariable variable;
  variable.name = "PYTORCH_ALLOC_CONF", variable.value = "per_process_memory_fraction:0.5";
  facts.variables = {variable};
  EXPECT_TRUE(of(facts).fraction_set);
  EXPECT_EQ(why_of(of(facts), QuotaBackend::torch), "set");
}

// A limit that a plan hands out holds a context as the guard charges it: both have one figure, where a row of the table is
// missing as well.
TEST(QuotaMachine, APlanAndTheGuardHaveOneContext) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  for (const char* cc : {"8.9", "9.0", "8.7", "99.0", ""}) {
    knowledge::Gpu gpu;
    gpu.cc = cc;
    gpu.memory_gb = 24;
    facts::Facts facts;
    facts.cuda.devices.resize(1);
    if (*cc != 0) facts.cuda.devices[0].compute_capability = fact<std::string>(cc);
    ASSERT_EQ(quota_cards(facts, knowledge).size(), 1u);
    EXPECT_EQ(quota_cards(facts, knowledge)[0].context_bytes,
              memory::card_capacity(gpu, knowledge).context)
        << cc;
    EXPECT_GE(quota_cards(facts, knowledge)[0].context_bytes, uint64_t{147} << 20) << cc;
  }
}

}  // namespace quota_machine_test
}  // namespace cufit::resolve
