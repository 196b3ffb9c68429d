// SPDX-License-Identifier: Apache-2.0
// The driver child against the stand-in libraries: what each kind of machine and each failure
// becomes.
#include "driver/described.h"

#include <gtest/gtest.h>

#include "facts/facts_json.h"
#include "support/places.h"

namespace cufit::test {
namespace {

using facts::CudaDevice;
using facts::Facts;
using facts::NvmlGpu;

TEST(Driver, HealthyMachineAnswersEverything) {
  Facts facts = ask(k_system + h200(0,
                                    "[process]\npid = 4711\nname = python train.py\nused = 1000\n"
                                    "[process]\npid = 12\nname = Xorg\nkind = compute graphics\n"
                                    "[process]\npid = 99\nkind = graphics\nused = 7\n"));
  EXPECT_TRUE(facts.problems.empty()) << facts.problems.front();
  EXPECT_EQ(facts.nvml.init_result.value_or(-1), 0);
  EXPECT_EQ(facts.nvml.driver_version.value_or(""), "580.95.05");
  EXPECT_EQ(facts.nvml.cuda_version.value_or(0), 13000);
  EXPECT_EQ(facts.nvml.library.value_or(""),
            cufit::test::binary_dir() + "/standin/libnvidia-ml.so.1");
  ASSERT_EQ(facts.nvml.gpus.size(), 1u);
  const NvmlGpu& gpu = facts.nvml.gpus[0];
  EXPECT_EQ(gpu.state_code.value_or(-1), 0);
  EXPECT_EQ(gpu.name.value_or(""), "NVIDIA H200");
  EXPECT_EQ(gpu.uuid.value_or(""), "GPU-00000000-1111-2222-3333-444444444440");
  EXPECT_EQ(gpu.serial.value_or(""), "1654023000000");
  EXPECT_EQ(gpu.pci_address.value_or(""), "0000:00:00.0");
  EXPECT_EQ(gpu.compute_capability.value_or(""), "9.0");
  EXPECT_EQ(gpu.brand.value_or(""), "nvidia");
  EXPECT_EQ(gpu.memory_total_bytes.value_or(0), 67108864u);
  EXPECT_EQ(gpu.memory_used_bytes.value_or(0), 1048576u);
  EXPECT_EQ(gpu.memory_reserved_bytes.value_or(0), 2097152u);
  EXPECT_EQ(gpu.memory_free_bytes.value_or(0), 67108864u - 3145728u);
  EXPECT_FALSE(gpu.mig_current.value_or(true));
  EXPECT_TRUE(gpu.ecc_current.value_or(false));
  EXPECT_EQ(gpu.ecc_uncorrected_volatile.value_or(9), 0u);
  EXPECT_EQ(gpu.ecc_uncorrected_aggregate.value_or(9), 2u);
  EXPECT_EQ(gpu.ecc_corrected_volatile.value_or(9), 0u);
  EXPECT_EQ(gpu.ecc_corrected_aggregate.value_or(9), 5u);
  EXPECT_EQ(gpu.retirement_pending.why, WhyNot::not_supported);
  EXPECT_TRUE(gpu.remap_pending.value_or(false));
  EXPECT_FALSE(gpu.remap_failed.value_or(true));
  EXPECT_EQ(gpu.remapped_correctable.value_or(9), 1u);
  EXPECT_EQ(gpu.remapped_uncorrectable.value_or(9), 2u);
  EXPECT_EQ(gpu.throttle.value_or({}),
            std::vector<std::string>{"hw_thermal_slowdown"});  // idle is not listed
  EXPECT_EQ(gpu.pcie_gen.value_or(0), 4u);
  EXPECT_EQ(gpu.pcie_gen_max.value_or(0), 5u);
  EXPECT_EQ(gpu.pcie_width.value_or(0), 8u);
  EXPECT_EQ(gpu.pcie_width_max.value_or(0), 16u);
  EXPECT_EQ(gpu.nvlinks_total.value_or(0), 18u);
  EXPECT_EQ(gpu.nvlinks_active.value_or(0), 17u);
  EXPECT_EQ(gpu.compute_mode.value_or(""), "default");
  EXPECT_TRUE(gpu.persistence.value_or(false));
  EXPECT_EQ(facts.kernel.persistence.value_or(""), "enabled");
  EXPECT_EQ(gpu.temperature_c.value_or(0), 36u);
  EXPECT_EQ(gpu.power_watts.value_or(0), 122u);
  EXPECT_EQ(gpu.power_limit_watts.value_or(0), 700u);
  ASSERT_TRUE(gpu.processes);
  ASSERT_EQ(gpu.processes->size(), 3u);  // one that is in both lists counts once
  EXPECT_EQ((*gpu.processes)[0].pid, 12u);
  EXPECT_EQ((*gpu.processes)[0].used_bytes.why, WhyNot::not_supported);
  EXPECT_EQ((*gpu.processes)[0].kind, "compute");
  EXPECT_EQ((*gpu.processes)[1].kind, "graphics");
  EXPECT_EQ((*gpu.processes)[1].name, "");
  EXPECT_EQ((*gpu.processes)[2].name, "python train.py");
  EXPECT_EQ((*gpu.processes)[2].used_bytes.value_or(0), 1000u);
}

TEST(Driver, HealthyMachineComputes) {
  Facts facts = ask(k_system + h200());
  EXPECT_EQ(facts.cuda.init_result.value_or(-1), 0);
  EXPECT_EQ(facts.cuda.driver_version.value_or(0), 13000);
  EXPECT_EQ(facts.cuda.device_count.value_or(0), 1);
  ASSERT_EQ(facts.cuda.devices.size(), 1u);
  const CudaDevice& device = facts.cuda.devices[0];
  EXPECT_EQ(device.name.value_or(""), "NVIDIA H200");
  EXPECT_EQ(device.uuid.value_or(""), "GPU-00000000-1111-2222-3333-444444444440");
  EXPECT_EQ(device.pci_address.value_or(""), "0000:00:00.0");
  EXPECT_EQ(device.compute_capability.value_or(""), "9.0");
  EXPECT_EQ(device.memory_total_bytes.value_or(0), 67108864u);
  EXPECT_EQ(device.memory_free_bytes.value_or(0), 67108864u);
  EXPECT_FALSE(device.integrated.value_or(true));
  EXPECT_EQ(device.compute_check.value_or(""), "ok");
  EXPECT_EQ(device.compute_code.value_or(-1), 0);
  EXPECT_FALSE(device.memory_test);
  EXPECT_EQ(device.memory_test.why, WhyNot::not_asked);
  EXPECT_GT(facts.cuda.driver_seconds, 0);
}

TEST(Driver, NothingIsAskedWithoutDriverCalls) {
  host::RealHost machine("/", {});
  host::ProbeOptions options;
  options.driver_calls = false;
  options.driver_library_dir = cufit::test::binary_dir() + "/standin";
  Facts facts;
  host::read_driver_answers(machine, options, facts);
  EXPECT_EQ(facts::facts_to_json(facts), facts::facts_to_json(Facts()));
}

TEST(Driver, LibrariesThatAreMissing) {
  Facts facts = ask(k_system + h200(), {"/nonexistent", {}, 30, false, {}});
  EXPECT_EQ(facts.nvml.library.why, WhyNot::not_present);
  EXPECT_NE(facts.nvml.library.note.find("cannot open shared object file"), std::string::npos);
  EXPECT_EQ(facts.nvml.init_result.why, WhyNot::not_present);
  EXPECT_EQ(facts.cuda.library.why, WhyNot::not_present);
  EXPECT_EQ(facts.cuda.library.source.detail, "/nonexistent/libcuda.so.1");
  EXPECT_FALSE(facts.cuda.device_count);
  EXPECT_EQ(facts.cuda.driver_seconds, 0);
}

TEST(Driver, OldDriverWithoutNewFunctions) {
  Facts facts = ask(
      "driver = 418.226.00\ncuda = 10010\n" +
          h200(0,
               "[process]\npid = 7\nname = a\nused = 5\n[process]\npid = 8\nname = b\nused = 6\n"),
      {cufit::test::binary_dir() + "/standin_old", {}, 30, false, {}});
  EXPECT_TRUE(facts.problems.empty());
  EXPECT_EQ(facts.nvml.init_result.value_or(-1), 0);
  EXPECT_EQ(facts.nvml.init_result.source.detail, "nvmlInit");
  EXPECT_EQ(facts.nvml.cuda_version.value_or(0), 10010);
  ASSERT_EQ(facts.nvml.gpus.size(), 1u);
  const NvmlGpu& gpu = facts.nvml.gpus[0];
  EXPECT_EQ(gpu.pci_address.value_or(""), "0000:00:00.0");
  EXPECT_EQ(gpu.memory_total_bytes.value_or(0), 67108864u);
  EXPECT_EQ(gpu.memory_used_bytes.value_or(0),
            3145728u);  // the old call counts what the driver reserves as used
  EXPECT_EQ(gpu.memory_reserved_bytes.why, WhyNot::not_supported);
  EXPECT_EQ(gpu.mig_current.why, WhyNot::not_supported);
  EXPECT_EQ(gpu.remap_pending.why, WhyNot::not_supported);
  EXPECT_EQ(gpu.throttle.value_or({}), std::vector<std::string>{"hw_thermal_slowdown"});
  ASSERT_TRUE(gpu.processes);
  ASSERT_EQ(gpu.processes->size(), 2u);
  EXPECT_EQ((*gpu.processes)[1].pid, 8u);
  EXPECT_EQ((*gpu.processes)[1].used_bytes.value_or(0), 6u);
  ASSERT_EQ(facts.cuda.devices.size(), 1u);
  EXPECT_EQ(facts.cuda.devices[0].uuid.source.detail, "cuDeviceGetUuid");
  EXPECT_EQ(facts.cuda.devices[0].compute_check.value_or(""), "ok");
}

TEST(Driver, ProcessEntriesOfAnySize) {
  for (const char* stride : {"16", "24", "32"}) {
    Facts facts = ask(k_system + "process_stride = " + stride + "\n" +
                      h200(0,
                           "[process]\npid = 1240\nused = 5\n[process]\npid = 2131\nused = 6\n"
                           "[process]\npid = 2375\nused = 7\n"));
    ASSERT_EQ(facts.nvml.gpus.size(), 1u);
    const auto& processes = facts.nvml.gpus[0].processes;
    ASSERT_TRUE(processes) << stride;
    ASSERT_EQ(processes->size(), 3u) << stride;
    EXPECT_EQ((*processes)[1].pid, 2131u) << stride;
    EXPECT_EQ((*processes)[2].used_bytes.value_or(0), 7u) << stride;
  }
}

TEST(Driver, ProcessEntriesOfUnknownSizeAreNotGuessed) {
  Facts facts =
      ask(k_system + "process_stride = 20\n" + h200(0, "[process]\npid = 1\n[process]\npid = 2\n"));
  ASSERT_EQ(facts.nvml.gpus.size(), 1u);
  EXPECT_FALSE(facts.nvml.gpus[0].processes);
  EXPECT_EQ(facts.nvml.gpus[0].processes.why, WhyNot::not_supported);
}

TEST(Driver, MoreProcessesThanTheFirstBufferHolds) {
  std::string many;
  for (int i = 1; i <= 300; ++i) many += "[process]\npid = " + std::to_string(i) + "\nused = 1\n";
  Facts facts = ask(k_system + h200(0, many));
  ASSERT_TRUE(facts.nvml.gpus.at(0).processes);
  EXPECT_EQ(facts.nvml.gpus[0].processes->size(), 300u);
  EXPECT_EQ(facts.nvml.gpus[0].processes->back().pid, 300u);
}

TEST(Driver, UnifiedMemoryBoardHasNoMemoryNumbers) {
  Facts facts =
      ask("driver = 580.95.05\ncuda = 13000\n[gpu]\nname = NVIDIA GB10\ncc = 12.1\nbrand = 14\n"
          "uuid = GPU-00000000-1111-2222-3333-444444444444\ncuda_total = 128000000000\n"
          "cuda_free = 67108864\nintegrated = 1\n");
  ASSERT_EQ(facts.nvml.gpus.size(), 1u);
  const NvmlGpu& gpu = facts.nvml.gpus[0];
  for (const Fact<uint64_t>* fact : {&gpu.memory_total_bytes, &gpu.memory_used_bytes,
                                     &gpu.memory_free_bytes, &gpu.memory_reserved_bytes}) {
    EXPECT_FALSE(*fact);
    EXPECT_EQ(fact->why, WhyNot::not_supported);
    EXPECT_EQ(fact->note, "Not Supported (3)");
  }
  EXPECT_EQ(gpu.state_code.value_or(-1), 0);
  ASSERT_EQ(facts.cuda.devices.size(), 1u);
  EXPECT_TRUE(facts.cuda.devices[0].integrated.value_or(false));
  EXPECT_EQ(facts.cuda.devices[0].memory_total_bytes.value_or(0), 128000000000u);
  EXPECT_EQ(facts.cuda.devices[0].compute_check.value_or(""), "ok");
}

TEST(Driver, MigMachine) {
  std::string mig =
      "[mig]\nname = NVIDIA H200 MIG 1g.18gb\nuuid = MIG-aaaaaaaa-1111-2222-3333-444444444444\n"
      "memory = 16777216\n[mig]\nname = NVIDIA H200 MIG 2g.35gb\n"
      "uuid = MIG-bbbbbbbb-1111-2222-3333-444444444444\nmemory = 33554432\n";
  std::string machine = k_system + h200(0, "mig.current = 1\nmig.pending = 0\n" + mig);
  Facts facts = ask(machine);
  ASSERT_EQ(facts.nvml.gpus.size(), 1u);
  EXPECT_TRUE(facts.nvml.gpus[0].mig_current.value_or(false));
  EXPECT_FALSE(facts.nvml.gpus[0].mig_pending.value_or(true));
  ASSERT_EQ(facts.nvml.gpus[0].mig_instances.size(), 2u);
  EXPECT_EQ(facts.nvml.gpus[0].mig_instances[1].name, "2g.35gb");
  EXPECT_EQ(facts.nvml.gpus[0].mig_instances[1].memory_bytes.value_or(0), 33554432u);
  ASSERT_EQ(facts.cuda.devices.size(), 1u);
  EXPECT_EQ(facts.cuda.devices[0].uuid.value_or(""), "MIG-aaaaaaaa-1111-2222-3333-444444444444");
  EXPECT_EQ(facts.cuda.devices[0].memory_total_bytes.value_or(0), 16777216u);
  facts = ask(k_system + h200(0, "mig.current = 1\n"));  // MIG on, no instance made
  EXPECT_TRUE(facts.nvml.gpus.at(0).mig_instances.empty());
  EXPECT_EQ(facts.cuda.init_result.value_or(0), 100);
}

TEST(Driver, EightGpus) {
  std::string machine = k_system;
  for (int i = 0; i < 8; ++i) machine += h200(i);
  Facts facts = ask(machine);
  ASSERT_EQ(facts.nvml.gpus.size(), 8u);
  ASSERT_EQ(facts.cuda.devices.size(), 8u);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(facts.nvml.gpus[i].index, i);
    EXPECT_EQ(facts.nvml.gpus[i].serial.value_or(""), "165402300000" + std::to_string(i));
    EXPECT_EQ(facts.cuda.devices[i].ordinal, i);
    EXPECT_EQ(facts.cuda.devices[i].compute_check.value_or(""), "ok");
  }
}

TEST(Driver, WaysBetweenGpusAreAskedWithDeepAlone) {
  const std::string more =
      "nvlink_version = 6\nnvlink_remote = switch\ntopology = 50\np2p = 0\np2p_nvlink = 0\n";
  const std::string text = k_system + h200(0, more) +
                           h200(1,
                                "peer_access = 0\ntopology = 30\np2p = 2\n"
                                "nvlink_remote = 0000:00:00.0\n");
  EXPECT_TRUE(ask(text).nvml.gpus.at(0).peers.empty());
  EXPECT_TRUE(ask(text).cuda.devices.at(0).peers.empty());
  Ask how;
  how.deep = true;
  const facts::Facts facts = ask(text, how);
  ASSERT_EQ(facts.nvml.gpus.size(), 2u);
  const facts::NvmlGpu &first = facts.nvml.gpus[0], &second = facts.nvml.gpus[1];
  EXPECT_EQ(first.nvlink_version.value_or(0), 6u);
  ASSERT_TRUE(first.nvlink_remotes);
  EXPECT_EQ(*first.nvlink_remotes, std::vector<std::string>(17, "switch"));
  ASSERT_EQ(first.peers.size(), 1u);
  EXPECT_EQ(first.peers[0].index, 1u);
  EXPECT_EQ(first.peers[0].topology.value_or(""), "system");
  EXPECT_EQ(first.peers[0].p2p.value_or(""), "ok");
  EXPECT_EQ(first.peers[0].p2p_nvlink.value_or(""), "ok");
  EXPECT_EQ(second.nvlink_version.why, WhyNot::not_supported);
  EXPECT_EQ(second.nvlink_remotes->front(), "0000:00:00.0");
  EXPECT_EQ(second.peers.at(0).topology.value_or(""), "hostbridge");
  EXPECT_EQ(second.peers.at(0).p2p.value_or(""), "gpu_not_supported");
  ASSERT_EQ(facts.cuda.devices.size(), 2u);
  EXPECT_TRUE(facts.cuda.devices[0].peers.at(0).access.value_or(false));
  EXPECT_FALSE(facts.cuda.devices[1].peers.at(0).access.value_or(true));
}

TEST(Driver, OneGpuLostAmongFour) {
  Facts facts = ask(k_system + h200(0) + h200(1) +
                    h200(2,
                         "fail.nvmlDeviceGetHandleByIndex_v2 = 15\n"
                         "fail.cuDevicePrimaryCtxRetain = 999\n") +
                    h200(3));
  ASSERT_EQ(facts.nvml.gpus.size(), 4u);
  const NvmlGpu& lost = facts.nvml.gpus[2];
  EXPECT_EQ(lost.state_code.value_or(-1), 15);
  EXPECT_EQ(lost.name.why, WhyNot::not_present);
  EXPECT_EQ(lost.name.note, "GPU is lost (15)");
  EXPECT_EQ(lost.processes.note, "GPU is lost (15)");
  EXPECT_EQ(facts.nvml.gpus[3].name.value_or(""), "NVIDIA H200");
  ASSERT_EQ(facts.cuda.devices.size(), 4u);
  EXPECT_EQ(facts.cuda.devices[2].compute_check.value_or(""), "context");
  EXPECT_EQ(facts.cuda.devices[2].compute_code.value_or(0), 999);
  EXPECT_EQ(facts.cuda.devices[3].compute_check.value_or(""), "ok");
}

TEST(Driver, GpuThatGetsLostLater) {
  Facts facts = ask(k_system + h200(0, "fail.nvmlDeviceGetPowerUsage = 15\n") +
                    h200(1, "fail.nvmlDeviceGetTemperature = 16\n"));
  ASSERT_EQ(facts.nvml.gpus.size(), 2u);
  EXPECT_EQ(facts.nvml.gpus[0].state_code.value_or(0), 15);
  EXPECT_EQ(facts.nvml.gpus[0].state_code.source.detail, "nvmlDeviceGetPowerUsage");
  EXPECT_EQ(facts.nvml.gpus[0].temperature_c.value_or(0), 36u);
  EXPECT_FALSE(facts.nvml.gpus[0].power_watts);
  EXPECT_EQ(facts.nvml.gpus[1].state_code.value_or(0), 16);
}

TEST(Driver, HiddenByCudaVisibleDevices) {
  struct Row {
    const char* value;
    int init;
    std::vector<std::string> serials;  // the last character of the UUID says which
  };
  for (const Row& row :
       {Row{"", 100, {}}, Row{"-1", 100, {}}, Row{"1", 0, {"1"}}, Row{"1,0", 0, {"1", "0"}},
        Row{"0,7,1", 0, {"0"}}, Row{"GPU-00000001-1111-2222-3333-444444444441", 0, {"1"}}}) {
    Ask how;
    how.variables["CUDA_VISIBLE_DEVICES"] = row.value;
    Facts facts = ask(k_system + h200(0) + h200(1), how);
    EXPECT_EQ(facts.nvml.gpus.size(), 2u) << row.value;  // NVML does not look at the variable
    EXPECT_EQ(facts.cuda.init_result.value_or(-1), row.init) << row.value;
    ASSERT_EQ(facts.cuda.devices.size(), row.serials.size()) << row.value;
    for (size_t i = 0; i < row.serials.size(); ++i) {
      EXPECT_EQ(facts.cuda.devices[i].uuid->substr(39), row.serials[i]) << row.value;
    }
  }
}

}  // namespace
}  // namespace cufit::test
