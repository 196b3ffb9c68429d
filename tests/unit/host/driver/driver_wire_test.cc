// SPDX-License-Identifier: Apache-2.0
#include "host/driver/driver_wire.h"

#include <gtest/gtest.h>

#include "facts/facts_json.h"
#include "host/driver/nvml_processes.h"

namespace cufit::host {
namespace driver_wire_test {

facts::NvmlGpu sample_gpu(uint32_t index) {
  facts::NvmlGpu gpu;
  gpu.index = index;
  gpu.name = known<std::string>("NVIDIA H200", SourceKind::nvml, "nvmlDeviceGetName");
  gpu.serial = missing<std::string>(WhyNot::no_permission, SourceKind::nvml, "nvmlDeviceGetSerial",
                                    "no (4)");
  gpu.ecc_current = known(false, SourceKind::nvml, "nvmlDeviceGetEccMode");
  gpu.memory_total_bytes = known<uint64_t>(0, SourceKind::nvml, "nvmlDeviceGetMemoryInfo_v2");
  gpu.throttle = known<std::vector<std::string>>({"hw_slowdown", ""}, SourceKind::nvml, "x");
  gpu.mig_instances.push_back({"1g.10gb", "MIG-1", known<uint64_t>(5, SourceKind::nvml, "m")});
  facts::GpuProcess process;
  process.pid = 7;
  process.kind = "compute";
  gpu.processes = known<std::vector<facts::GpuProcess>>({process}, SourceKind::nvml, "p");
  return gpu;
}

std::string sample_stream() {
  std::string out;
  facts::NvmlFacts nvml;
  nvml.init_result = known(0, SourceKind::nvml, "nvmlInit_v2");
  nvml.gpus.resize(3);
  put_nvml(out, nvml);
  put_call(out, "nvmlDeviceGetName");
  put_gpu(out, 1, sample_gpu(1));
  facts::CudaFacts cuda;
  cuda.device_count = known(2, SourceKind::cuda, "cuDeviceGetCount");
  cuda.driver_seconds = 0.25;
  cuda.devices.resize(2);
  put_cuda(out, cuda);
  facts::CudaDevice device;
  device.ordinal = 1;
  device.compute_check = known<std::string>("ok", SourceKind::cuda, "cufit_check");
  put_device(out, 1, device);
  put_progress(out, "GPU 0 memory", 5, 10);
  put_end(out);
  return out;
}

TEST(DriverWire, RoundTrip) {
  std::string bytes = sample_stream();
  ChildAnswers answers;
  EXPECT_EQ(take_frames(bytes, answers), bytes.size());
  EXPECT_EQ(answers.damage, "");
  EXPECT_TRUE(answers.finished);
  EXPECT_EQ(answers.call, "nvmlDeviceGetName");
  EXPECT_EQ(answers.progress_what, "GPU 0 memory");
  EXPECT_EQ(answers.progress_done, 5u);
  EXPECT_EQ(answers.progress_total, 10u);
  facts::NvmlFacts expected;
  expected.init_result = known(0, SourceKind::nvml, "nvmlInit_v2");
  expected.gpus.resize(3);
  expected.gpus[1] = sample_gpu(1);
  expected.gpus[2].index = 2;
  EXPECT_EQ(facts::nvml_to_json(answers.nvml), facts::nvml_to_json(expected));
  ASSERT_EQ(answers.cuda.devices.size(), 2u);
  EXPECT_EQ(answers.cuda.devices[1].compute_check.value_or(""), "ok");
  EXPECT_EQ(answers.cuda.driver_seconds, 0.25);
}

TEST(DriverWire, AnySplitGivesTheSame) {
  std::string bytes = sample_stream();
  ChildAnswers whole;
  take_frames(bytes, whole);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    ChildAnswers answers;
    size_t used = take_frames(std::string_view(bytes).substr(0, cut), answers);
    EXPECT_LE(used, cut);
    EXPECT_EQ(answers.damage, "") << cut;
    EXPECT_EQ(answers.finished, cut == bytes.size()) << cut;
    take_frames(std::string_view(bytes).substr(used), answers);
    EXPECT_EQ(facts::nvml_to_json(answers.nvml), facts::nvml_to_json(whole.nvml)) << cut;
    EXPECT_EQ(facts::cuda_to_json(answers.cuda), facts::cuda_to_json(whole.cuda)) << cut;
  }
}

TEST(DriverWire, DamagedBytesAreRefusedOrHarmless) {
  std::string bytes = sample_stream();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned char value : {0x00, 0x01, 0x7F, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      ChildAnswers answers;
      EXPECT_LE(take_frames(damaged, answers), damaged.size());
      EXPECT_LE(answers.nvml.gpus.size(), 256u);
      EXPECT_LE(answers.cuda.devices.size(), 256u);
    }
  }
}

TEST(DriverWire, ImpossibleFramesAreNamed) {
  struct Row {
    std::string bytes;
    const char* damage;
  };
  std::string gpu_out_of_range, unknown_kind;
  put_gpu(gpu_out_of_range, 0, facts::NvmlGpu());  // no GPU was announced
  put_call(unknown_kind, "x");
  unknown_kind[4] = 'z';
  for (const Row& row :
       {Row{std::string(9, '\0'), "frame size 0 from the child is impossible"},
        Row{std::string(9, '\x7F'), "frame size 2139062143 from the child is impossible"},
        Row{gpu_out_of_range, "damaged frame of kind 71 from the child"},
        Row{unknown_kind, "damaged frame of kind 122 from the child"}}) {
    ChildAnswers answers;
    EXPECT_EQ(take_frames(row.bytes, answers), 0u);
    EXPECT_EQ(answers.damage, row.damage);
  }
}

TEST(DriverWire, MarksOnlyWhatWasNotReached) {
  facts::NvmlFacts nvml;
  nvml.gpus.push_back(sample_gpu(0));
  mark_unreached(nvml, WhyNot::timeout, "nvmlX", "nvmlX did not return within 10 s");
  EXPECT_EQ(nvml.init_result.why, WhyNot::timeout);
  EXPECT_EQ(nvml.gpus[0].name.value_or(""), "NVIDIA H200");
  EXPECT_EQ(nvml.gpus[0].serial.why, WhyNot::no_permission);
  EXPECT_EQ(nvml.gpus[0].power_watts.why, WhyNot::timeout);
  EXPECT_EQ(nvml.gpus[0].power_watts.source.detail, "nvmlX");
}

TEST(ProcessStride, MeasuresWhereWritingStopped) {
  for (size_t stride : {size_t{16}, size_t{24}, size_t{32}}) {
    for (size_t count : {size_t{1}, size_t{2}, size_t{5}}) {
      std::vector<unsigned char> buffer(64 * 32, k_process_fill);
      std::fill(buffer.begin(), buffer.begin() + static_cast<long>(stride * count), 0);
      EXPECT_EQ(process_stride(buffer, count), stride);
    }
  }
  std::vector<unsigned char> untouched(64 * 32, k_process_fill);
  EXPECT_EQ(process_stride(untouched, 1), 0u);
  std::vector<unsigned char> odd(64 * 32, k_process_fill);
  std::fill(odd.begin(), odd.begin() + 40, 0);
  EXPECT_EQ(process_stride(odd, 2), 0u);  // 20 bytes each: no version of the call
}

}  // namespace driver_wire_test
}  // namespace cufit::host
