// SPDX-License-Identifier: Apache-2.0
#include "host/driver/nvml_room.h"

#include <algorithm>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/driver/nvml_calls.h"
#include "host/driver/nvml_processes.h"
#include "host/driver/worker_answer.h"

namespace cufit::host {
namespace {

using namespace nvml;

constexpr double k_room_seconds = 60;  // 3 s a GPU without the persistence daemon
constexpr uint32_t k_most_room_gpus = 64, k_most_instances = 64;
constexpr size_t k_most_room_cards = 256;

class RoomChild {
 public:
  explicit RoomChild(DriverCalls& calls) : calls_(calls), nvml_(calls) {}

  std::string ask(const std::string& library_dir) {
    facts_.library = calls_.open(library_dir, "libnvidia-ml.so.1", SourceKind::nvml);
    if (facts_.library) {
      const char* name = nullptr;
      const int result = nvml_.call_any<int()>({"nvmlInit_v2", "nvmlInit"}, name);
      // The words of the error go where a path would stand.
      if (result == k_success)
        ask_gpus();
      else
        facts_.library =
            missing<std::string>(NvmlCalls::why_of(result), SourceKind::nvml, name,
                                 format("{}: {}", name, formats::printable(nvml_.text_of(result))));
    }
    std::string out;
    put_nvml(out, facts_);
    for (uint32_t i = 0; i < facts_.gpus.size(); ++i) put_gpu(out, i, facts_.gpus[i]);
    put_end(out);
    return out;
  }

 private:
  void ask_gpus() {
    uint32_t count = 0;
    const char* name = nullptr;
    const int result = nvml_.call_any<int(uint32_t*)>(
        {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, name, &count);
    facts_.gpu_count = nvml_.answer(result, name, count);
    if (result != k_success) return;
    for (uint32_t i = 0; i < std::min(count, k_most_room_gpus); ++i) ask_index(i);
    calls_.call<int()>("nvmlShutdown");
  }

  void ask_index(uint32_t index) {
    Device device = nullptr;
    const char* name = nullptr;
    const int result = nvml_.call_any<int(uint32_t, Device*)>(
        {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, name, index, &device);
    if (result != k_success) return;  // a lost GPU is none to start on
    facts::NvmlGpu gpu;
    nvml_.about(&gpu);
    gpu.index = index;
    gpu.state_code = known(0, SourceKind::nvml, name);
    ask_identity(nvml_, gpu, device);
    nvml_.flags(device, "nvmlDeviceGetMigMode", gpu.mig_current, gpu.mig_pending);
    gpu.compute_mode = ask_compute_mode(nvml_, device);
    if (!gpu.mig_current.value_or(false)) {
      gpu.display_active = nvml_.flag(device, "nvmlDeviceGetDisplayActive");
      add(std::move(gpu), device);
      return;
    }
    const uint32_t most = nvml_.number(device, "nvmlDeviceGetMaxMigDeviceCount").value_or(0);
    for (uint32_t i = 0; i < std::min(most, k_most_instances); ++i) {
      Device mig = nullptr;
      if (nvml_.call<int(Device, uint32_t, Device*)>("nvmlDeviceGetMigDeviceHandleByIndex", device,
                                                     i, &mig) != k_success)
        continue;  // numbers that are not in use
      facts::NvmlGpu instance = gpu;
      nvml_.about(&instance);
      instance.name = nvml_.text(mig, "nvmlDeviceGetName");
      instance.uuid = nvml_.text(mig, "nvmlDeviceGetUUID");
      add(std::move(instance), mig);
    }
    nvml_.about(nullptr);
  }

  // Processes before memory: what a program takes in between is then counted as free no longer.
  void add(facts::NvmlGpu gpu, Device device) {
    nvml_.about(nullptr);
    if (facts_.gpus.size() >= k_most_room_cards) return;
    gpu.processes = read_processes(calls_, device);
    ask_memory(nvml_, gpu, device);
    facts_.gpus.push_back(std::move(gpu));
  }

  DriverCalls& calls_;
  NvmlCalls nvml_;
  facts::NvmlFacts facts_;
};

}  // namespace

Result<facts::NvmlFacts> read_gpu_room(const Host& host, const std::string& library_dir) {
  CUFIT_TRY(worker, spawn_worker(host, [&](int pipe) {
              DriverCalls calls(pipe);
              calls.send(RoomChild(calls).ask(library_dir));
            }));
  CUFIT_TRY(answers, read_worker_answer(worker, k_room_seconds));
  if (!answers.nvml.library)
    return fail(Code::unsupported,
                format("NVML: {}", formats::printable(answers.nvml.library.note)));
  return std::move(answers.nvml);
}

}  // namespace cufit::host
