// SPDX-License-Identifier: Apache-2.0
// NVML's side of the driver child: every field of NvmlFacts, in calls that only read.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "base/format.h"
#include "host/driver_child.h"
#include "host/driver_wire.h"
#include "host/nvml_api.h"
#include "host/nvml_processes.h"

namespace cufit::host {
namespace {

using namespace nvml;

using GetText = int(Device, char*, uint32_t);
using GetNumber = int(Device, uint32_t*);
using GetNumbers = int(Device, uint32_t*, uint32_t*);

class NvmlQuery {
 public:
  NvmlQuery(DriverCalls& calls, const ChildTask& task) : calls_(calls), task_(task) {}
  void run();

 private:
  bool open();
  void ask_system();
  void ask_gpu(NvmlGpu& gpu);
  void ask_identity(NvmlGpu& gpu, Device device);
  void ask_memory(NvmlGpu& gpu, Device device);
  void ask_mig(NvmlGpu& gpu, Device device);
  void ask_errors(NvmlGpu& gpu, Device device);
  void ask_links(NvmlGpu& gpu, Device device);
  void ask_state(NvmlGpu& gpu, Device device);

  // The first of these functions that the library has, newest first.
  template <class F, class... Args>
  int call_any(std::initializer_list<const char*> names, const char*& used, Args... args) {
    int result = k_no_symbol;
    for (const char* name : names) {
      used = name;
      result = calls_.call<F>(name, args...);
      // A library may export a name that its kernel module does not know.
      if (result != k_no_symbol && result != k_function_not_found) return result;
    }
    return result;
  }
  template <class T>
  Fact<T> answer(int result, const char* name, T value);
  std::string text_of(int result);
  Fact<std::string> text(Device device, const char* name);
  Fact<uint32_t> number(Device device, const char* name);
  Fact<bool> flag(Device device, const char* name);
  void flags(Device device, const char* name, Fact<bool>& current, Fact<bool>& pending);
  Fact<uint64_t> ecc_errors(Device device, int type, int counter);
  void note_state(int result, const char* name);

  DriverCalls& calls_;
  const ChildTask& task_;
  NvmlFacts facts_;
  NvmlGpu* current_ = nullptr;
};

WhyNot why_of(int result) {
  switch (result) {
    case k_no_symbol:
    case k_not_supported:
    case k_function_not_found:
    case k_argument_version_mismatch:
    case k_deprecated: return WhyNot::not_supported;
    case k_no_permission: return WhyNot::no_permission;
    case k_timeout: return WhyNot::timeout;
    default: return WhyNot::not_present;
  }
}

// Codes that say something about the GPU and not about the one field that was asked for.
bool about_the_gpu(int result) {
  return result == k_corrupted_inforom || result == k_gpu_is_lost || result == k_reset_required;
}

std::string NvmlQuery::text_of(int result) {
  if (result == k_no_symbol) return "the library has no such function";
  auto* describe = reinterpret_cast<const char* (*)(int)>(calls_.find("nvmlErrorString"));
  const char* words = describe ? describe(result) : nullptr;
  return format("{} ({})", words ? words : "NVML error", result);
}

void NvmlQuery::note_state(int result, const char* name) {
  if (!current_ || !about_the_gpu(result) || current_->state_code.value_or(0) != 0) return;
  current_->state_code = known(result, SourceKind::nvml, name);
}

template <class T>
Fact<T> NvmlQuery::answer(int result, const char* name, T value) {
  if (result == k_success) return known<T>(std::move(value), SourceKind::nvml, name);
  note_state(result, name);
  return missing<T>(why_of(result), SourceKind::nvml, name, text_of(result));
}

Fact<std::string> NvmlQuery::text(Device device, const char* name) {
  char buffer[128] = {};  // the longest documented is 96
  int result = calls_.call<GetText>(name, device, buffer, uint32_t{sizeof buffer});
  buffer[sizeof buffer - 1] = 0;
  return answer<std::string>(result, name, buffer);
}

Fact<uint32_t> NvmlQuery::number(Device device, const char* name) {
  uint32_t value = 0;
  int result = calls_.call<GetNumber>(name, device, &value);
  return answer(result, name, value);
}

Fact<bool> NvmlQuery::flag(Device device, const char* name) {
  uint32_t value = 0;
  int result = calls_.call<GetNumber>(name, device, &value);
  return answer(result, name, value != 0);
}

void NvmlQuery::flags(Device device, const char* name, Fact<bool>& current, Fact<bool>& pending) {
  uint32_t now = 0, later = 0;
  int result = calls_.call<GetNumbers>(name, device, &now, &later);
  current = answer(result, name, now != 0);
  pending = answer(result, name, later != 0);
}

Fact<std::string> named(Fact<uint32_t> number, const Named* begin, const Named* end) {
  if (!number) return missing<std::string>(number.why, number.source.kind, number.source.detail, number.note);
  const Named* found = std::find_if(begin, end, [&](const Named& row) { return row.value == *number; });
  std::string name = found != end ? found->name : format("number {}", *number);
  return known<std::string>(std::move(name), number.source.kind, number.source.detail);
}

bool NvmlQuery::open() {
  facts_.library = calls_.open(task_.library_dir, "libnvidia-ml.so.1", SourceKind::nvml);
  if (!facts_.library) {
    mark_unreached(facts_, WhyNot::not_present, "libnvidia-ml.so.1", facts_.library.note);
    return false;
  }
  const char* name = nullptr;
  int result = call_any<int()>({"nvmlInit_v2", "nvmlInit"}, name);
  if (result == k_no_symbol) {
    facts_.init_result = missing<int>(WhyNot::not_supported, SourceKind::nvml, name, text_of(result));
    return false;
  }
  facts_.init_result = known(result, SourceKind::nvml, name);
  if (result == k_success) return true;
  mark_unreached(facts_, why_of(result), name, text_of(result));
  return false;
}

void NvmlQuery::ask_system() {
  char version[80] = {};
  int result = calls_.call<int(char*, uint32_t)>("nvmlSystemGetDriverVersion", version, uint32_t{sizeof version});
  version[sizeof version - 1] = 0;
  facts_.driver_version = answer<std::string>(result, "nvmlSystemGetDriverVersion", version);
  int cuda = 0;
  const char* name = nullptr;
  result = call_any<int(int*)>({"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"}, name, &cuda);
  facts_.cuda_version = answer(result, name, cuda);
  uint32_t count = 0;
  result = call_any<int(uint32_t*)>({"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, name, &count);
  facts_.gpu_count = answer(result, name, count);
  if (result != k_success) return;
  for (uint32_t i = 0; i < std::min(count, 64u); ++i) facts_.gpus.emplace_back().index = i;
}

void NvmlQuery::ask_gpu(NvmlGpu& gpu) {
  current_ = &gpu;
  gpu.state_code = known(0, SourceKind::nvml, "nvmlDeviceGetHandleByIndex_v2");
  Device device = nullptr;
  const char* name = nullptr;
  int result = call_any<int(uint32_t, Device*)>({"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, name,
                                                gpu.index, &device);
  if (result != k_success) {
    gpu.state_code = known(result, SourceKind::nvml, name);
    NvmlFacts alone;  // mark_unreached works on a whole NvmlFacts
    alone.gpus.push_back(std::move(gpu));
    mark_unreached(alone, why_of(result), name, text_of(result));
    gpu = std::move(alone.gpus.front());
    return;
  }
  ask_identity(gpu, device);
  ask_memory(gpu, device);
  ask_mig(gpu, device);
  ask_errors(gpu, device);
  ask_links(gpu, device);
  ask_state(gpu, device);
  gpu.processes = read_processes(calls_, device);
}

void NvmlQuery::ask_identity(NvmlGpu& gpu, Device device) {
  PciInfo pci{};
  const char* name = nullptr;
  int result = call_any<int(Device, PciInfo*)>(
      {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}, name, device, &pci);
  gpu.pci_address = answer(result, name, format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device));
  gpu.name = text(device, "nvmlDeviceGetName");
  gpu.uuid = text(device, "nvmlDeviceGetUUID");
  gpu.serial = text(device, "nvmlDeviceGetSerial");
  int major = 0, minor = 0;
  result = calls_.call<int(Device, int*, int*)>("nvmlDeviceGetCudaComputeCapability", device, &major, &minor);
  gpu.compute_capability = answer(result, "nvmlDeviceGetCudaComputeCapability", format("{}.{}", major, minor));
  gpu.brand = named(number(device, "nvmlDeviceGetBrand"), std::begin(k_brands), std::end(k_brands));
}

void NvmlQuery::ask_memory(NvmlGpu& gpu, Device device) {
  MemoryV2 memory{};
  memory.version = k_memory_v2;
  const char* name = "nvmlDeviceGetMemoryInfo_v2";
  int result = calls_.call<int(Device, MemoryV2*)>(name, device, &memory);
  if (result == k_no_symbol || result == k_function_not_found || result == k_argument_version_mismatch) {
    gpu.memory_reserved_bytes = answer(result, name, uint64_t{0});
    Memory old{};
    name = "nvmlDeviceGetMemoryInfo";
    result = calls_.call<int(Device, Memory*)>(name, device, &old);
    memory.total = old.total, memory.free = old.free, memory.used = old.used;
  } else {
    gpu.memory_reserved_bytes = answer(result, name, memory.reserved);
  }
  gpu.memory_total_bytes = answer(result, name, memory.total);
  gpu.memory_used_bytes = answer(result, name, memory.used);
  gpu.memory_free_bytes = answer(result, name, memory.free);
}

void NvmlQuery::ask_mig(NvmlGpu& gpu, Device device) {
  flags(device, "nvmlDeviceGetMigMode", gpu.mig_current, gpu.mig_pending);
  if (!gpu.mig_current.value_or(false)) return;
  uint32_t count = number(device, "nvmlDeviceGetMaxMigDeviceCount").value_or(0);
  for (uint32_t i = 0; i < std::min(count, 64u); ++i) {
    Device mig = nullptr;
    if (calls_.call<int(Device, uint32_t, Device*)>("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &mig) !=
        k_success) {
      continue;  // numbers that are not in use; NOT_FOUND
    }
    MigInstance instance;
    std::string name = text(mig, "nvmlDeviceGetName").value_or("");
    size_t at = name.rfind(" MIG ");  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    instance.name = at == std::string::npos ? name : name.substr(at + 5);
    instance.uuid = text(mig, "nvmlDeviceGetUUID").value_or("");
    Memory memory{};
    int result = calls_.call<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo", mig, &memory);
    instance.memory_bytes = answer(result, "nvmlDeviceGetMemoryInfo", memory.total);
    gpu.mig_instances.push_back(std::move(instance));
  }
}

Fact<uint64_t> NvmlQuery::ecc_errors(Device device, int type, int counter) {
  uint64_t count = 0;
  const char* name = "nvmlDeviceGetTotalEccErrors";
  int result = calls_.call<int(Device, int, int, uint64_t*)>(name, device, type, counter, &count);
  return answer(result, name, count);
}

void NvmlQuery::ask_errors(NvmlGpu& gpu, Device device) {
  constexpr int k_corrected = 0, k_uncorrected = 1, k_volatile = 0, k_aggregate = 1;
  flags(device, "nvmlDeviceGetEccMode", gpu.ecc_current, gpu.ecc_pending);
  gpu.ecc_uncorrected_volatile = ecc_errors(device, k_uncorrected, k_volatile);
  gpu.ecc_uncorrected_aggregate = ecc_errors(device, k_uncorrected, k_aggregate);
  gpu.ecc_corrected_volatile = ecc_errors(device, k_corrected, k_volatile);
  gpu.ecc_corrected_aggregate = ecc_errors(device, k_corrected, k_aggregate);
  gpu.retirement_pending = flag(device, "nvmlDeviceGetRetiredPagesPendingStatus");
  uint32_t corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  const char* name = "nvmlDeviceGetRemappedRows";
  int result = calls_.call<int(Device, uint32_t*, uint32_t*, uint32_t*, uint32_t*)>(name, device, &corrected,
                                                                                  &uncorrected, &pending, &failed);
  gpu.remapped_correctable = answer(result, name, uint64_t{corrected});
  gpu.remapped_uncorrectable = answer(result, name, uint64_t{uncorrected});
  gpu.remap_pending = answer(result, name, pending != 0);
  gpu.remap_failed = answer(result, name, failed != 0);
}

void NvmlQuery::ask_links(NvmlGpu& gpu, Device device) {
  gpu.pcie_gen = number(device, "nvmlDeviceGetCurrPcieLinkGeneration");
  gpu.pcie_gen_max = number(device, "nvmlDeviceGetMaxPcieLinkGeneration");
  gpu.pcie_width = number(device, "nvmlDeviceGetCurrPcieLinkWidth");
  gpu.pcie_width_max = number(device, "nvmlDeviceGetMaxPcieLinkWidth");
  // There is no count: links exist as far as their numbers are accepted.
  const char* name = "nvmlDeviceGetNvLinkState";
  uint32_t total = 0, active = 0;
  int result = k_success;
  for (uint32_t link = 0; link < k_max_links; ++link) {
    uint32_t state = 0;
    result = calls_.call<int(Device, uint32_t, uint32_t*)>(name, device, link, &state);
    if (result != k_success) break;
    ++total;
    active += state != 0 ? 1 : 0;
  }
  if (total > 0) result = k_success;
  gpu.nvlinks_total = answer(result, name, total);
  gpu.nvlinks_active = answer(result, name, active);
}

void NvmlQuery::ask_state(NvmlGpu& gpu, Device device) {
  uint64_t reasons = 0;
  const char* name = nullptr;
  int result = call_any<int(Device, uint64_t*)>(
      {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}, name, device, &reasons);
  std::vector<std::string> names;
  for (const Named& row : k_throttle_reasons) {
    if (reasons & row.value) names.push_back(row.name);
  }
  gpu.throttle = answer(result, name, names);
  gpu.compute_mode = named(number(device, "nvmlDeviceGetComputeMode"), std::begin(k_compute_modes),
                           std::end(k_compute_modes));
  gpu.persistence = flag(device, "nvmlDeviceGetPersistenceMode");
  gpu.display_active = flag(device, "nvmlDeviceGetDisplayActive");
  uint32_t degrees = 0;
  name = "nvmlDeviceGetTemperature";
  result = calls_.call<int(Device, uint32_t, uint32_t*)>(name, device, 0u, &degrees);
  if (result == k_no_symbol || result == k_deprecated || result == k_function_not_found) {
    TemperatureV1 newer{k_temperature_v1, 0, 0};
    name = "nvmlDeviceGetTemperatureV";
    result = calls_.call<int(Device, TemperatureV1*)>(name, device, &newer);
    degrees = static_cast<uint32_t>(std::max(newer.temperature, 0));
  }
  gpu.temperature_c = answer(result, name, degrees);
  auto watts = [&](const char* function) {
    Fact<uint32_t> milliwatts = number(device, function);
    if (milliwatts) milliwatts.value = (*milliwatts + 500) / 1000;
    return milliwatts;
  };
  gpu.power_watts = watts("nvmlDeviceGetPowerUsage");
  gpu.power_limit_watts = watts("nvmlDeviceGetEnforcedPowerLimit");
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
    for (NvmlGpu& gpu : facts_.gpus) {
      ask_gpu(gpu);
      calls_.flush();
    }
    calls_.call<int()>("nvmlShutdown");
  }
  calls_.flush();
}

}  // namespace

void ask_nvml(DriverCalls& calls, const ChildTask& task) { NvmlQuery(calls, task).run(); }

}  // namespace cufit::host
