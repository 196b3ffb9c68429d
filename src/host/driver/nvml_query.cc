// SPDX-License-Identifier: Apache-2.0
// NVML's side of the driver child: every field of NvmlFacts, in calls that only read.
#include <algorithm>

#include "host/driver/driver_child.h"
#include "host/driver/driver_wire.h"
#include "host/driver/nvml_calls.h"

namespace cufit::host {
namespace {

using namespace nvml;

constexpr uint32_t k_max_gpus = 64;

class NvmlQuery {
 public:
  NvmlQuery(DriverCalls& calls, const ChildTask& task) : calls_(calls), nvml_(calls), task_(task) {}
  void run();

 private:
  bool open();
  void ask_system();

  DriverCalls& calls_;
  NvmlCalls nvml_;
  const ChildTask& task_;
  facts::NvmlFacts facts_;
  facts::NvmlGpu* current_ = nullptr;
};

bool NvmlQuery::open() {
  facts_.library = calls_.open(task_.library_dir, "libnvidia-ml.so.1", SourceKind::nvml);
  if (!facts_.library) {
    mark_unreached(facts_, WhyNot::not_present, "libnvidia-ml.so.1", facts_.library.note);
    return false;
  }
  const char* name = nullptr;
  int result = nvml_.call_any<int()>({"nvmlInit_v2", "nvmlInit"}, name);
  if (result == k_no_symbol) {
    facts_.init_result =
        missing<int>(WhyNot::not_supported, SourceKind::nvml, name, nvml_.text_of(result));
    return false;
  }
  facts_.init_result = known(result, SourceKind::nvml, name);
  if (result == k_success) return true;
  mark_unreached(facts_, NvmlCalls::why_of(result), name, nvml_.text_of(result));
  return false;
}

void NvmlQuery::ask_system() {
  char version[80] = {};
  int result = nvml_.call<int(char*, uint32_t)>("nvmlSystemGetDriverVersion", version,
                                                uint32_t{sizeof version});
  version[sizeof version - 1] = 0;
  facts_.driver_version = nvml_.answer<std::string>(result, "nvmlSystemGetDriverVersion", version);
  int cuda = 0;
  const char* name = nullptr;
  result = nvml_.call_any<int(int*)>(
      {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"}, name, &cuda);
  facts_.cuda_version = nvml_.answer(result, name, cuda);
  uint32_t count = 0;
  result =
      nvml_.call_any<int(uint32_t*)>({"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, name, &count);
  facts_.gpu_count = nvml_.answer(result, name, count);
  if (result != k_success) return;
  for (uint32_t i = 0; i < std::min(count, k_max_gpus); ++i) facts_.gpus.emplace_back().index = i;
}

void NvmlQuery::run() {
  calls_.set_pending([this](std::string& out) {
    if (current_) {
      put_gpu(out, current_->index, *current_);
    } else {
      put_nvml(out, facts_);
    }
  });
  if (open()) {
    ask_system();
    calls_.flush();
    if (task_.depth == DriverDepth::identity) facts_.gpus.clear();
    for (facts::NvmlGpu& gpu : facts_.gpus) {
      current_ = &gpu;
      ask_gpu(nvml_, gpu);
      calls_.flush();
    }
    if (task_.deep && facts_.gpus.size() > 1) {
      for (facts::NvmlGpu& gpu : facts_.gpus) {
        current_ = &gpu;
        ask_peers(nvml_, facts_.gpus, gpu);
        calls_.flush();
      }
    }
    calls_.call<int()>("nvmlShutdown");
  }
  calls_.flush();
}

}  // namespace

void ask_nvml(DriverCalls& calls, const ChildTask& task) { NvmlQuery(calls, task).run(); }

}  // namespace cufit::host
