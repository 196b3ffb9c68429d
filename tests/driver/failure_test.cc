// SPDX-License-Identifier: Apache-2.0
// Every failure code that matters, hangs, crashes, and wrong results.
#include "driver/described.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/places.h"

namespace cufit::test {
namespace {

using facts::Facts;

TEST(DriverFailure, CudaInitCodes) {
  for (int code : {3, 34, 35, 36, 46, 100, 101, 802, 803, 804, 999}) {
    Facts facts = ask(k_system + format("fail.cuInit = {}\n", code) + h200());
    EXPECT_EQ(facts.cuda.init_result.value_or(-1), code);
    EXPECT_EQ(facts.cuda.driver_version.value_or(0), 13000) << code;  // may be asked before cuInit
    EXPECT_FALSE(facts.cuda.device_count) << code;
    EXPECT_EQ(facts.cuda.device_count.note, format("cuInit returned {}", code));
    EXPECT_TRUE(facts.cuda.devices.empty()) << code;
    EXPECT_EQ(facts.nvml.gpus.size(), 1u) << code;  // the other library is not concerned
    EXPECT_TRUE(facts.problems.empty()) << code;
  }
}

TEST(DriverFailure, NvmlInitCodes) {
  struct Row {
    int code;
    WhyNot why;
  };
  for (const Row& row :
       {Row{3, WhyNot::not_supported}, Row{4, WhyNot::no_permission}, Row{9, WhyNot::not_present},
        Row{12, WhyNot::not_present}, Row{15, WhyNot::not_present}, Row{16, WhyNot::not_present},
        Row{18, WhyNot::not_present}, Row{999, WhyNot::not_present}}) {
    Facts facts = ask(k_system + format("fail.nvmlInit_v2 = {}\n", row.code) + h200());
    EXPECT_EQ(facts.nvml.init_result.value_or(-1), row.code);
    EXPECT_EQ(facts.nvml.init_result.source.detail, "nvmlInit_v2");
    EXPECT_FALSE(facts.nvml.driver_version) << row.code;
    EXPECT_EQ(facts.nvml.driver_version.why, row.why) << row.code;
    EXPECT_TRUE(contains(facts.nvml.driver_version.note, format("({})", row.code))) << row.code;
    EXPECT_TRUE(facts.nvml.gpus.empty()) << row.code;
    EXPECT_EQ(facts.cuda.devices.at(0).compute_check.value_or(""), "ok") << row.code;
  }
}

TEST(DriverFailure, ComputeStepsAndCodes) {
  struct Row {
    const char* call;
    int code;
    const char* step;
  };
  const Row k_rows[] = {
      {"cuDevicePrimaryCtxRetain", 2, "context"},   // out of memory
      {"cuDevicePrimaryCtxRetain", 46, "context"},  // exclusive mode and taken, or prohibited
      {"cuDevicePrimaryCtxRetain", 101, "context"},
      {"cuDevicePrimaryCtxRetain", 201, "context"},
      {"cuDevicePrimaryCtxRetain", 214, "context"},  // uncorrectable ECC error
      {"cuDevicePrimaryCtxRetain", 304, "context"},
      {"cuDevicePrimaryCtxRetain", 802, "context"},  // fabric not ready
      {"cuDevicePrimaryCtxRetain", 999, "context"},
      {"cuCtxSetCurrent", 201, "context"},
      {"cuMemGetInfo_v2", 201, "context"},
      {"cuMemAlloc_v2", 2, "allocate"},
      {"cuModuleLoadData", 200, "load_ptx"},
      {"cuModuleLoadData", 209, "load_ptx"},
      {"cuModuleLoadData", 218, "load_ptx"},
      {"cuModuleLoadData", 221, "load_ptx"},  // no libnvidia-ptxjitcompiler
      {"cuModuleLoadData", 222, "load_ptx"},
      {"cuModuleLoadData", 223, "load_ptx"},
      {"cuModuleGetFunction", 500, "load_ptx"},
      {"cuMemcpyHtoD_v2", 1, "launch"},
      {"cuLaunchKernel", 700, "launch"},
      {"cuLaunchKernel", 701, "launch"},
      {"cuLaunchKernel", 719, "launch"},
      {"cuCtxSynchronize", 700, "launch"},
      {"cuCtxSynchronize", 702, "launch"},
      {"cuCtxSynchronize", 715, "launch"},
      {"cuCtxSynchronize", 719, "launch"},
      {"cuMemcpyDtoH_v2", 719, "launch"},
  };
  for (const Row& row : k_rows) {
    Facts facts = ask(k_system + h200(0, format("fail.{} = {}\n", row.call, row.code)) + h200(1));
    ASSERT_EQ(facts.cuda.devices.size(), 2u);
    const facts::CudaDevice& device = facts.cuda.devices[0];
    EXPECT_EQ(device.compute_check.value_or(""), row.step) << row.call;
    EXPECT_EQ(device.compute_check.source.detail, row.call);
    EXPECT_EQ(device.compute_code.value_or(0), row.code) << row.call;
    EXPECT_EQ(device.name.value_or(""), "NVIDIA H200") << row.call;
    EXPECT_EQ(facts.cuda.devices[1].compute_check.value_or(""), "ok")
        << row.call;  // the others are still checked
    EXPECT_TRUE(facts.problems.empty())
        << row.call << ": " << facts.problems.front();  // and all memory was freed
  }
}

TEST(DriverFailure, FullMemoryIsOutOfMemoryNotBroken) {
  Facts facts = ask(k_system + h200(0, "cuda_free = 20000\n"));
  EXPECT_EQ(facts.cuda.devices.at(0).compute_check.value_or(""), "allocate");
  EXPECT_EQ(facts.cuda.devices[0].compute_code.value_or(0), 2);
  EXPECT_EQ(facts.cuda.devices[0].memory_free_bytes.value_or(0), 20000u);
}

TEST(DriverFailure, DeviceOlderThanThePtx) {
  Facts facts = ask(k_system + h200(0, "cc = 2.0\n"));
  EXPECT_EQ(facts.cuda.devices.at(0).compute_check.value_or(""), "load_ptx");
  EXPECT_EQ(facts.cuda.devices[0].compute_code.value_or(0), 209);
}

TEST(DriverFailure, WrongResultIsFoundWhereverItIs) {
  for (int word : {0, 1, 255, 256, 2048, 4095}) {
    Facts facts = ask(k_system + h200(0, format("corrupt_check = {}\n", word)));
    EXPECT_EQ(facts.cuda.devices.at(0).compute_check.value_or(""), "result") << word;
    EXPECT_EQ(facts.cuda.devices[0].compute_code.value_or(-1), 0) << word;
  }
}

// The limit is generous: it is the healthy child beside it that needs the time on a busy machine.
TEST(DriverFailure, HangNamesTheCallAndKeepsWhatCameBefore) {
  Facts facts = ask(k_system + h200(0) + h200(1, "hang = nvmlDeviceGetMigMode\n") + h200(2),
                    {cufit::test::binary_dir() + "/standin", {}, 5, false, {}});
  EXPECT_EQ(facts.nvml.driver_version.value_or(""), "580.95.05");
  ASSERT_EQ(facts.nvml.gpus.size(), 3u);
  EXPECT_EQ(facts.nvml.gpus[0].power_watts.value_or(0), 122u);
  EXPECT_EQ(facts.nvml.gpus[1].memory_total_bytes.value_or(0), 67108864u);
  EXPECT_EQ(facts.nvml.gpus[1].mig_current.why, WhyNot::timeout);
  EXPECT_EQ(facts.nvml.gpus[1].mig_current.note, "nvmlDeviceGetMigMode did not return within 5 s");
  EXPECT_EQ(facts.nvml.gpus[2].name.why, WhyNot::timeout);
  EXPECT_EQ(facts.nvml.gpus[2].index, 2u);
  EXPECT_EQ(facts.cuda.devices.at(2).compute_check.value_or(""),
            "ok");  // the other child is not held up
  ASSERT_EQ(facts.problems.size(), 1u);
  EXPECT_EQ(facts.problems[0], "asking NVML: nvmlDeviceGetMigMode did not return within 5 s");
}

TEST(DriverFailure, HangsInCuda) {
  for (const char* call : {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSynchronize"}) {
    Facts facts = ask(k_system + format("hang = {}\n", call) + h200(),
                      {cufit::test::binary_dir() + "/standin", {}, 3, false, {}});
    EXPECT_EQ(facts.cuda.driver_version.value_or(0), 13000) << call;
    bool in_init = std::string(call) == "cuInit";
    WhyNot why = in_init ? facts.cuda.init_result.why : facts.cuda.devices.at(0).compute_check.why;
    EXPECT_EQ(why, WhyNot::timeout) << call;
    std::string note =
        in_init ? facts.cuda.init_result.note : facts.cuda.devices.at(0).compute_check.note;
    EXPECT_EQ(note, format("{} did not return within 3 s", call));
    EXPECT_EQ(facts.nvml.gpus.at(0).name.value_or(""), "NVIDIA H200") << call;
  }
}

TEST(DriverFailure, CrashesNameTheSignalAndTheCall) {
  struct Row {
    const char* how;
    const char* call;
    const char* note;
  };
  for (const Row& row :
       {Row{"crash", "nvmlDeviceGetName", "SIGSEGV in nvmlDeviceGetName"},
        Row{"abort", "nvmlDeviceGetName", "SIGABRT in nvmlDeviceGetName"},
        Row{"exit", "nvmlDeviceGetName", "the process ended in nvmlDeviceGetName with status 3"}}) {
    Facts facts = ask(k_system + h200(0, format("{} = {}\n", row.how, row.call)));
    ASSERT_EQ(facts.nvml.gpus.size(), 1u) << row.how;
    EXPECT_EQ(facts.nvml.gpus[0].pci_address.value_or(""), "0000:00:00.0") << row.how;
    EXPECT_EQ(facts.nvml.gpus[0].name.why, WhyNot::crashed) << row.how;
    EXPECT_EQ(facts.nvml.gpus[0].name.note, row.note);
    EXPECT_EQ(facts.cuda.devices.at(0).compute_check.value_or(""), "ok") << row.how;
  }
  Facts facts = ask(k_system + "crash = cuInit\n" + h200());
  EXPECT_EQ(facts.cuda.init_result.why, WhyNot::crashed);
  EXPECT_EQ(facts.cuda.init_result.note, "SIGSEGV in cuInit");
  EXPECT_EQ(facts.nvml.init_result.value_or(-1), 0);
  facts =
      ask(k_system + "crash = nvmlShutdown\n" + h200());  // nothing is missing then, but it is said
  EXPECT_EQ(facts.nvml.gpus.at(0).processes->size(), 0u);
  ASSERT_EQ(facts.problems.size(), 1u);
  EXPECT_EQ(facts.problems[0], "asking NVML: SIGSEGV in nvmlShutdown");
}

TEST(DriverFailure, FieldsThatMayNotBeRead) {
  Facts facts =
      ask(k_system + h200(0,
                          "fail.nvmlDeviceGetSerial = 4\nfail.nvmlDeviceGetTotalEccErrors = 3\n"
                          "fail.nvmlDeviceGetComputeRunningProcesses_v3 = 4\n"));
  const facts::NvmlGpu& gpu = facts.nvml.gpus.at(0);
  EXPECT_EQ(gpu.serial.why, WhyNot::no_permission);
  EXPECT_EQ(gpu.serial.note, "Insufficient Permissions (4)");
  EXPECT_EQ(gpu.ecc_corrected_volatile.why, WhyNot::not_supported);
  EXPECT_EQ(gpu.processes.why, WhyNot::no_permission);
  EXPECT_EQ(gpu.state_code.value_or(-1), 0);
}

TEST(DriverFailure, FunctionThatTheKernelDoesNotKnowFallsBack) {
  Facts facts = ask(k_system + h200(0,
                                    "fail.nvmlDeviceGetMemoryInfo_v2 = 13\n"
                                    "fail.nvmlDeviceGetComputeRunningProcesses_v3 = 13\n"
                                    "[process]\npid = 5\nused = 1\n"));
  const facts::NvmlGpu& gpu = facts.nvml.gpus.at(0);
  EXPECT_EQ(gpu.memory_total_bytes.value_or(0), 67108864u);
  EXPECT_EQ(gpu.memory_total_bytes.source.detail, "nvmlDeviceGetMemoryInfo");
  ASSERT_TRUE(gpu.processes);
  EXPECT_EQ(gpu.processes.source.detail, "nvmlDeviceGetComputeRunningProcesses_v2");
}

TEST(DriverFailure, DeviceCountThatFails) {
  Facts facts =
      ask(k_system + "fail.nvmlDeviceGetCount_v2 = 999\nfail.cuDeviceGetCount = 999\n" + h200());
  EXPECT_FALSE(facts.nvml.gpu_count);
  EXPECT_EQ(facts.nvml.gpu_count.note, "Unknown Error (999)");
  EXPECT_FALSE(facts.cuda.device_count);
  EXPECT_EQ(facts.cuda.device_count.note, "CUDA error 999");
}

TEST(DriverDeep, MemoryTestPassesAndReportsProgress) {
  uint64_t last = 0, total = 0;
  Ask how;
  how.deep = true;
  how.progress = [&](const std::string&, uint64_t done, uint64_t all) { last = done, total = all; };
  Facts facts = ask(k_system + h200(), how);
  EXPECT_EQ(facts.cuda.devices.at(0).memory_test.value_or(""), "ok");
  EXPECT_EQ(facts.cuda.devices[0].memory_tested_bytes.value_or(0),
            33554432u);  // half of what is free
  EXPECT_GT(total, 0u);
  EXPECT_EQ(last, total);
  EXPECT_TRUE(facts.problems.empty());
}

TEST(DriverDeep, StuckBitIsFoundWithItsPlace) {
  // A bit stuck at one shows in one of the two passes, whatever the pattern holds there.
  for (uint64_t word : {uint64_t{0}, uint64_t{1}, uint64_t{77777}, uint64_t{4194303}}) {
    Ask how;
    how.deep = true;
    Facts facts = ask(k_system + h200(0, format("corrupt_memory = {}\n", word)), how);
    EXPECT_EQ(facts.cuda.devices.at(0).memory_test.value_or(""),
              format("mismatch at byte {}", word * 8));
    EXPECT_EQ(facts.cuda.devices[0].compute_check.value_or(""), "ok");
  }
}

TEST(DriverDeep, NoMemoryTestOnADeviceThatCannotCompute) {
  Ask how;
  how.deep = true;
  Facts facts = ask(k_system + h200(0, "fail.cuLaunchKernel = 719\n"), how);
  EXPECT_EQ(facts.cuda.devices.at(0).compute_check.value_or(""), "launch");
  EXPECT_EQ(facts.cuda.devices[0].memory_test.why, WhyNot::not_asked);
}

}  // namespace
}  // namespace cufit::test
