// SPDX-License-Identifier: Apache-2.0
#include "checks/health/health.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cufit::checks {
namespace health_test {

const knowledge::Knowledge& world() { return knowledge::Knowledge::builtin(); }

template <class T>
Fact<T> said(T value) {
  return known<T>(std::move(value), SourceKind::nvml, "stated");
}

// Two H200 that are well.
facts::Facts machine() {
  facts::Facts facts;
  facts.origin = "live";
  facts.kernel.version =
      known<std::string>("580.95.05", SourceKind::file, "/sys/module/nvidia/version");
  facts.kernel.log = known(std::vector<std::string>(), SourceKind::file, "kernel log");
  facts.nvml.library = said<std::string>("libnvidia-ml.so.1");
  facts.nvml.init_result = said(0);
  facts.nvml.driver_version = said<std::string>("580.95.05");
  facts.nvml.gpu_count = said(uint32_t{2});
  facts.pci = known(std::vector<facts::PciGpu>(), SourceKind::file, "/sys/bus/pci/devices");
  for (uint32_t i = 0; i < 2; ++i) {
    facts::NvmlGpu gpu;
    gpu.index = i;
    gpu.state_code = said(0);
    gpu.name = said<std::string>("NVIDIA H200");
    gpu.uuid = said("GPU-" + std::to_string(i) + "1111111-2222");
    gpu.pci_address = said("0000:0" + std::to_string(i + 1) + ":00.0");
    gpu.memory_used_bytes = said(uint64_t{1} << 30);
    gpu.memory_total_bytes = said(uint64_t{141} << 30);
    gpu.pcie_width = said(uint32_t{16});
    gpu.pcie_width_max = said(uint32_t{16});
    facts.nvml.gpus.push_back(gpu);
    facts::PciGpu pci;
    pci.address = *gpu.pci_address;
    pci.device_id = "2335";
    pci.class_code = "0302";
    pci.driver = known<std::string>("nvidia", SourceKind::file, "driver");
    facts.pci.value->push_back(pci);
    facts.kernel.nodes.push_back({"/dev/nvidia" + std::to_string(i),
                                  known<std::string>("crw-rw-rw-", SourceKind::file, "/dev"), true,
                                  "root"});
  }
  return facts;
}

void xid(facts::Facts& facts, uint32_t number, const std::string& pci = "0000:02:00") {
  facts.kernel.xids.push_back({number, pci, "NVRM: Xid", 1});
}

HealthReport judged(const facts::Facts& facts, const std::string& rules = "",
                    const std::vector<uint32_t>& gpus = {}) {
  const auto read = parse_health_rules(rules, "cufit.toml", world());
  EXPECT_TRUE(read);
  return judge_health(facts, world(), *read, gpus);
}

// "no drain xid_seen@GPU 1"
std::string told(const HealthReport& report) {
  std::string out = report.usable == Usable::yes  ? "yes"
                    : report.usable == Usable::no ? "no"
                                                  : "unknown";
  out += " " + report.action;
  for (const Finding& one : report.findings) out += " " + one.id + "@" + one.subject;
  return out;
}

TEST(Health, AMachineThatIsWell) {
  const HealthReport report = judged(machine());
  EXPECT_EQ(told(report), "yes ok");
  EXPECT_EQ(report.gpus, 2u);
  EXPECT_EQ(report.gpu_name, "NVIDIA H200");
  EXPECT_EQ(report.rules.size(), world().health_rules.size());
}

TEST(Health, XidsByTheirNumbers) {
  facts::Facts facts = machine();
  xid(facts, 13);  // a program's fault
  EXPECT_EQ(told(judged(facts)), "yes ok");
  xid(facts, 119);
  EXPECT_EQ(told(judged(facts)), "no drain xid_seen@GPU 1");
  EXPECT_EQ(told(judged(facts, "[health]\nxid = [31]\n")), "yes ok");
  EXPECT_EQ(told(judged(facts, "[health]\nxid = [13]\n")), "no drain xid_seen@GPU 1");
  EXPECT_EQ(told(judged(facts, "[health]\nwarnings = [\"xid\"]\n")), "yes watch xid_seen@GPU 1");
  EXPECT_EQ(told(judged(facts, "[health]\noff = [\"xid\"]\n")), "yes ok");
  EXPECT_EQ(told(judged(facts, "", {0})), "yes ok");
  EXPECT_EQ(told(judged(facts, "", {1})), "no drain xid_seen@GPU 1");
}

TEST(Health, AnXidThatAResetAnsweredIsPast) {
  facts::Facts facts = machine();
  xid(facts, 119);
  facts.nvml.gpus[1].recovery_action = said<std::string>("none");
  EXPECT_EQ(told(judged(facts)), "yes watch xid_seen@GPU 1");
  facts.nvml.gpus[1].recovery_action = said<std::string>("reset");
  EXPECT_EQ(told(judged(facts)), "no drain gpu_recovery_asked@GPU 1 xid_seen@GPU 1");
  // Drivers that do not say: the counters of memory errors are empty after a reset.
  facts = machine();
  xid(facts, 95);
  EXPECT_EQ(told(judged(facts)), "no drain xid_seen@GPU 1");
  facts.nvml.gpus[1].ecc_uncorrected_volatile = said(uint64_t{0});
  EXPECT_EQ(told(judged(facts)), "yes watch xid_seen@GPU 1");
  facts.nvml.gpus[1].ecc_uncorrected_volatile = said(uint64_t{1});
  EXPECT_EQ(judged(facts).usable, Usable::no);
  // A GPU that fell off the bus and answers is back; one that answers nothing is not.
  facts = machine();
  xid(facts, 79);
  EXPECT_EQ(told(judged(facts)), "yes watch xid_seen@GPU 1");
  facts.nvml.gpus[1].state_code = said(15);
  EXPECT_EQ(judged(facts).action, "reboot");
}

// An Xid of a link explains a fabric manager that is down to doctor; a node is judged by both.
TEST(Health, AnXidHidesNothingElse) {
  facts::Facts facts = machine();
  facts.kernel.nvswitch = true;
  facts.kernel.fabric_manager = known<std::string>("stopped", SourceKind::file, "/run");
  EXPECT_EQ(judged(facts).usable, Usable::no);
  xid(facts, 74);
  EXPECT_EQ(told(judged(facts)), "no drain fabric_manager@machine xid_seen@GPU 1");
}

TEST(Health, WhatTheDriverAsksForIsDone) {
  facts::Facts facts = machine();
  facts.nvml.gpus[0].recovery_action = said<std::string>("drain_and_reset");
  EXPECT_EQ(told(judged(facts)), "no drain gpu_recovery_asked@GPU 0");
}

TEST(Health, RowRemapping) {
  facts::Facts facts = machine();
  facts.nvml.gpus[0].remap_pending = said(true);
  EXPECT_EQ(told(judged(facts)), "yes watch gpu_memory_ecc@GPU 0");
  EXPECT_EQ(told(judged(facts, "[health]\nerrors = [\"remap_pending\"]\n")),
            "no drain gpu_memory_ecc@GPU 0");
  facts.nvml.gpus[0].remap_failed = said(true);
  EXPECT_EQ(judged(facts).action, "replace");
}

TEST(Health, Expectations) {
  const facts::Facts facts = machine();
  EXPECT_EQ(told(judged(facts, "[health]\ngpus = 2\ndriver = \">=580.65\"\n")), "yes ok");
  EXPECT_EQ(told(judged(facts, "[health]\ngpus = 8\n")), "no drain gpu_count_differs@machine");
  EXPECT_EQ(told(judged(facts, "[health]\ndriver = [\"570.86.15\", \"575.57.08\"]\n")),
            "no drain driver_version_differs@machine");
  EXPECT_EQ(told(judged(facts, "[health]\ncdi = true\n")), "no drain cdi_spec_not_found@machine");
  facts::Facts stale = machine();
  stale.engine.cdi_specs = {"/etc/cdi/nvidia.yaml", "/var/run/cdi/a b.yaml"};
  stale.engine.cdi_driver =
      known<std::string>("570.86.15", SourceKind::file, "/var/run/cdi/a b.yaml");
  const HealthReport old = judged(stale, "[health]\ncdi = true\n");
  EXPECT_EQ(told(old), "no drain cdi_spec_stale@machine");
  EXPECT_EQ(old.findings[0].args.at("path"), "'/var/run/cdi/a b.yaml'");
  // Two neighbours are no range.
  EXPECT_EQ(told(judged(facts, "[health]\nlink_width = 32\n")),
            "yes watch pcie_link_narrow@GPU 0,1");
}

TEST(Health, WhatIsAskedForAndCannotBeReadIsUnknown) {
  const facts::Facts facts = machine();
  EXPECT_EQ(judged(facts, "[health]\necc = true\n").usable, Usable::unknown);
  EXPECT_EQ(judged(facts, "[health]\nshm_free = \"1 GiB\"\n").usable, Usable::unknown);
  facts::Facts blind = machine();
  blind.kernel.log = missing<std::vector<std::string>>(WhyNot::no_permission, SourceKind::file,
                                                       "kernel log", "Operation not permitted");
  EXPECT_EQ(told(judged(blind)), "yes ok");
  ASSERT_EQ(judged(blind).missing.size(), 1u);
  EXPECT_EQ(judged(blind, "[health]\nxid = [79]\n").usable, Usable::unknown);
}

TEST(Health, Layouts) {
  facts::Facts facts = machine();
  facts.nvml.gpus[0].mig_current = said(true);
  facts.nvml.gpus[0].mig_instances = {{"3g.71gb", "MIG-1", {}}, {"1g.18gb", "MIG-2", {}}};
  facts.nvml.gpus[1].mig_current = said(false);
  EXPECT_EQ(told(judged(facts, "[health]\nmig = \"off\"\n")), "no drain mig_layout_differs@GPU 0");
  EXPECT_EQ(told(judged(facts, "[health]\nmig = [\"1g.18gb\", \"3g.71gb\"]\n")),
            "no drain mig_layout_differs@GPU 1");
}

TEST(Health, ADriverThatDoesNotAnswerIsNoWord) {
  facts::Facts facts = machine();
  facts.nvml = {};
  facts.nvml.init_result =
      missing<int>(WhyNot::timeout, SourceKind::nvml, "nvmlInit_v2", "no answer within 10 s");
  EXPECT_EQ(judged(facts).usable, Usable::unknown);
  EXPECT_NE(judged(facts).unknown_because, "");
  // With a reason in the kernel's log it is one.
  xid(facts, 119);
  EXPECT_EQ(judged(facts).usable, Usable::no);
}

TEST(Health, NoGpuIsNoUsableNodeUnlessNoneIsExpected) {
  facts::Facts facts;
  facts.pci = known(std::vector<facts::PciGpu>(), SourceKind::file, "/sys/bus/pci/devices");
  facts.nvml.init_result = missing<int>(WhyNot::not_present, SourceKind::nvml, "libnvidia-ml.so.1");
  EXPECT_EQ(judged(facts).usable, Usable::no);
  EXPECT_EQ(told(judged(facts, "[health]\ngpus = 0\n")), "yes ok");
}

// A step of a job sees its own GPU alone, and the bus has both.
TEST(Health, GpusOfOtherJobsAreNotMissing) {
  facts::Facts facts = machine();
  facts.nvml.gpus.pop_back();
  facts.nvml.gpu_count = said(uint32_t{1});
  EXPECT_EQ(told(judged(facts)), "no drain gpu_missing_in_driver@GPU 1");
  facts.kernel.nodes[1].usable = false;
  EXPECT_EQ(told(judged(facts)), "yes ok");
  // What the site asks for cannot be counted from there, unless even they are too few.
  EXPECT_EQ(told(judged(facts, "[health]\ngpus = 2\n")),
            "unknown watch gpu_count_differs@machine");
  EXPECT_EQ(told(judged(facts, "[health]\ngpus = 3\n")), "no drain gpu_count_differs@machine");
}

// A prolog asks for the numbers that Slurm gives instances.
TEST(Health, NumbersOfInstancesAreNoMissingGpus) {
  facts::Facts facts = machine();
  EXPECT_EQ(told(judged(facts, "", {5})), "no drain gpu_not_listed@machine");
  facts.nvml.gpus[0].mig_current = said(true);
  EXPECT_EQ(judged(facts, "", {5}).usable, Usable::unknown);
}

TEST(Health, XidsOfGpusThatAreNotAskedFor) {
  facts::Facts facts = machine();
  xid(facts, 95, "0000:41:00");
  EXPECT_EQ(judged(facts).usable, Usable::no);
  EXPECT_EQ(told(judged(facts, "", {0})), "yes ok");
  facts.system.container = known<std::string>("docker", SourceKind::file, "/.dockerenv");
  for (const Finding& one : judged(facts).findings) EXPECT_NE(one.id, "xid_seen");
  xid(facts, 95, "0000:02:00");
  EXPECT_TRUE(contains(told(judged(facts)), "xid_seen@GPU 1"));
}

// The log is cleared once, after all that wait for it were reset.
TEST(Health, OneStepForAllXids) {
  facts::Facts facts = machine();
  xid(facts, 62, "0000:01:00");
  xid(facts, 109, "0000:02:00");
  for (const Finding& one : judged(facts).findings) EXPECT_EQ(one.args.at("all"), "0,1");
  xid(facts, 79, "0000:41:00");
  for (const Finding& one : judged(facts).findings) EXPECT_EQ(one.variant, "reboot");
  // The worst comes first: it is the reason of the action.
  facts.nvml.gpu_count = said(uint32_t{1});
  const HealthReport both = judged(facts, "[health]\ngpus = 3\n");
  EXPECT_EQ(both.action, "reboot");
  EXPECT_EQ(both.findings.front().id, "xid_seen");
}

// A driver that tells what waits lets the log stay: GPUs that were not asked for are left alone.
TEST(Health, AStepForTheGpusThatWereAskedFor) {
  facts::Facts facts = machine();
  xid(facts, 62, "0000:01:00");
  xid(facts, 109, "0000:02:00");
  facts.nvml.gpus[0].recovery_action = said<std::string>("gpu_reset");
  const auto step = [&](const std::vector<uint32_t>& gpus) {
    for (const Finding& one : judged(facts, "", gpus).findings)
      if (one.id == "xid_seen" && one.subject == "GPU 0")
        return one.variant + " " + one.args.at("all");
    return std::string("none");
  };
  EXPECT_EQ(step({0}), " 0,1");  // the lines of GPU 1 would go, too
  facts.nvml.gpus[1].recovery_action = said<std::string>("gpu_reset");
  EXPECT_EQ(step({0}), "reset 0");
  EXPECT_EQ(step({}), "reset 0,1");
  xid(facts, 79, "0000:41:00");
  EXPECT_EQ(step({0}), "reset 0");
}

// The number of a GPU that only the bus shows is none that nvidia-smi knows.
TEST(Health, AGpuThatNvmlDoesNotListIsNotReset) {
  facts::Facts facts = machine();
  facts.nvml.gpus.pop_back();
  facts.nvml.gpu_count = said(uint32_t{1});
  xid(facts, 119, "0000:02:00");
  const auto steps = [&] {
    std::string out;
    for (const Finding& one : judged(facts).findings)
      if (one.id == "xid_seen") out += one.subject + " " + one.variant + ";";
    return out;
  };
  EXPECT_EQ(steps(), "GPU 1 reboot;");
  xid(facts, 119, "0000:01:00");
  EXPECT_EQ(steps(), "GPU 1,0 reboot;");
}

// Nobody looked: no "ok" stands for that.
TEST(Health, RulesThatNobodyLookedAt) {
  facts::Facts facts = machine();
  const auto state = [&](const char* id) {
    const HealthReport report = judged(facts);
    for (const HealthReport::Rule& rule : report.rules)
      if (rule.id == id) return std::string(to_string(rule.state));
    return std::string("no rule");
  };
  EXPECT_EQ(state("xid"), "ok");
  EXPECT_EQ(state("link_width"), "ok");
  EXPECT_EQ(state("nvlink"), "unknown");
  facts.kernel.log = missing<std::vector<std::string>>(WhyNot::no_permission, SourceKind::file, "");
  EXPECT_EQ(state("xid"), "unknown");
  for (facts::NvmlGpu& gpu : facts.nvml.gpus) {
    gpu.recovery_action = said<std::string>("none");
    gpu.nvlinks_active = missing<uint32_t>(WhyNot::not_supported, SourceKind::nvml, "");
  }
  EXPECT_EQ(state("xid"), "ok");  // the driver itself says so
  EXPECT_EQ(state("nvlink"), "ok");
}

// A program's own fault in the log (13) is no reason why the driver has no GPU.
TEST(Health, NoDeviceIsToldUnlessAnXidSaysWhy) {
  facts::Facts facts = machine();
  facts.nvml.gpus.clear();
  facts.nvml.gpu_count = said(uint32_t{0});
  facts.cuda.init_result = known(100, SourceKind::cuda, "cuInit");
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm"})
    facts.kernel.nodes.push_back(
        {path, known<std::string>("crw-rw-rw-", SourceKind::file, "/dev"), true, "root"});
  const auto told_of = [&] { return contains(told(judged(facts)), "no_cuda_device"); };
  xid(facts, 13, "0000:01:00");
  EXPECT_TRUE(told_of()) << told(judged(facts));
  xid(facts, 79, "0000:01:00");
  EXPECT_FALSE(told_of()) << told(judged(facts));
}

TEST(Health, AGpuThatWasAskedForAndIsNotThere) {
  facts::Facts facts = machine();
  EXPECT_EQ(judged(facts, "", {0, 5}).usable, Usable::no);
  facts.nvml.gpu_count = {};  // of an older recording
  EXPECT_EQ(judged(facts, "", {0, 5}).usable, Usable::no);
  EXPECT_EQ(judged(facts, "", {0}).usable, Usable::yes);
}

TEST(GpuList, NumbersRangesAndUuids) {
  const facts::Facts facts = machine();
  EXPECT_FALSE(gpus_of_list("GPU-", facts));  // two of them
  EXPECT_EQ(*gpus_of_list("3,0-1,1", facts), std::vector<uint32_t>({0, 1, 3}));
  EXPECT_EQ(*gpus_of_list("GPU-1111", facts), std::vector<uint32_t>({1}));
  for (const char* text : {"", "a", "1-", "2-1", "0,,1", "-1", "GPU-9", "99999"})
    EXPECT_FALSE(gpus_of_list(text, facts)) << text;
}

}  // namespace health_test
}  // namespace cufit::checks
