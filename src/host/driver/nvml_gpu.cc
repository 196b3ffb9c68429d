// SPDX-License-Identifier: Apache-2.0
// The questions about one GPU.
#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "host/driver/driver_wire.h"
#include "host/driver/nvml_calls.h"
#include "host/driver/nvml_processes.h"

namespace cufit::host {
namespace {

using namespace nvml;

Fact<std::string> named(Fact<uint32_t> number, const Named* begin, const Named* end) {
  if (!number)
    return missing<std::string>(number.why, number.source.kind, number.source.detail, number.note);
  const Named* found =
      std::find_if(begin, end, [&](const Named& row) { return row.value == *number; });
  std::string name = found != end ? found->name : format("number {}", *number);
  return known<std::string>(std::move(name), number.source.kind, number.source.detail);
}

}  // namespace

void ask_identity(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  PciInfo pci{};
  const char* name = nullptr;
  int result = nvml.call_any<int(Device, PciInfo*)>(
      {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}, name, device,
      &pci);
  gpu.pci_address =
      nvml.answer(result, name, format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device));
  gpu.minor = nvml.number(device, "nvmlDeviceGetMinorNumber");
  gpu.name = nvml.text(device, "nvmlDeviceGetName");
  gpu.uuid = nvml.text(device, "nvmlDeviceGetUUID");
  gpu.serial = nvml.text(device, "nvmlDeviceGetSerial");
  int major = 0, minor = 0;
  result = nvml.call<int(Device, int*, int*)>("nvmlDeviceGetCudaComputeCapability", device, &major,
                                              &minor);
  gpu.compute_capability =
      nvml.answer(result, "nvmlDeviceGetCudaComputeCapability", format("{}.{}", major, minor));
  gpu.brand =
      named(nvml.number(device, "nvmlDeviceGetBrand"), std::begin(k_brands), std::end(k_brands));
}

void ask_memory(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  MemoryV2 memory{};
  memory.version = k_memory_v2;
  const char* name = "nvmlDeviceGetMemoryInfo_v2";
  int result = nvml.call<int(Device, MemoryV2*)>(name, device, &memory);
  if (result == k_no_symbol || result == k_function_not_found ||
      result == k_argument_version_mismatch) {
    gpu.memory_reserved_bytes = nvml.answer(result, name, uint64_t{0});
    Memory old{};
    name = "nvmlDeviceGetMemoryInfo";
    result = nvml.call<int(Device, Memory*)>(name, device, &old);
    memory.total = old.total, memory.free = old.free, memory.used = old.used;
  } else {
    gpu.memory_reserved_bytes = nvml.answer(result, name, memory.reserved);
  }
  gpu.memory_total_bytes = nvml.answer(result, name, memory.total);
  gpu.memory_used_bytes = nvml.answer(result, name, memory.used);
  gpu.memory_free_bytes = nvml.answer(result, name, memory.free);
}

Fact<std::string> ask_compute_mode(NvmlCalls& nvml, Device device) {
  return named(nvml.number(device, "nvmlDeviceGetComputeMode"), std::begin(k_compute_modes),
               std::end(k_compute_modes));
}

namespace {

void ask_mig(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  nvml.flags(device, "nvmlDeviceGetMigMode", gpu.mig_current, gpu.mig_pending);
  if (!gpu.mig_current.value_or(false)) return;
  uint32_t count = nvml.number(device, "nvmlDeviceGetMaxMigDeviceCount").value_or(0);
  for (uint32_t i = 0; i < std::min(count, 64u); ++i) {
    Device mig = nullptr;
    if (nvml.call<int(Device, uint32_t, Device*)>("nvmlDeviceGetMigDeviceHandleByIndex", device, i,
                                                  &mig) != k_success) {
      continue;  // numbers that are not in use; NOT_FOUND
    }
    facts::MigInstance instance;
    std::string name = nvml.text(mig, "nvmlDeviceGetName").value_or("");
    size_t at = name.rfind(" MIG ");  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    instance.name = at == std::string::npos ? name : name.substr(at + 5);
    instance.uuid = nvml.text(mig, "nvmlDeviceGetUUID").value_or("");
    Memory memory{};
    int result = nvml.call<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo", mig, &memory);
    instance.memory_bytes = nvml.answer(result, "nvmlDeviceGetMemoryInfo", memory.total);
    gpu.mig_instances.push_back(std::move(instance));
  }
}

Fact<uint64_t> ecc_errors(NvmlCalls& nvml, Device device, int type, int counter) {
  uint64_t count = 0;
  const char* name = "nvmlDeviceGetTotalEccErrors";
  int result = nvml.call<int(Device, int, int, uint64_t*)>(name, device, type, counter, &count);
  return nvml.answer(result, name, count);
}

void ask_errors(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  constexpr int k_corrected = 0, k_uncorrected = 1, k_volatile = 0, k_aggregate = 1;
  nvml.flags(device, "nvmlDeviceGetEccMode", gpu.ecc_current, gpu.ecc_pending);
  gpu.ecc_uncorrected_volatile = ecc_errors(nvml, device, k_uncorrected, k_volatile);
  gpu.ecc_uncorrected_aggregate = ecc_errors(nvml, device, k_uncorrected, k_aggregate);
  gpu.ecc_corrected_volatile = ecc_errors(nvml, device, k_corrected, k_volatile);
  gpu.ecc_corrected_aggregate = ecc_errors(nvml, device, k_corrected, k_aggregate);
  gpu.retirement_pending = nvml.flag(device, "nvmlDeviceGetRetiredPagesPendingStatus");
  uint32_t corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  const char* name = "nvmlDeviceGetRemappedRows";
  int result = nvml.call<int(Device, uint32_t*, uint32_t*, uint32_t*, uint32_t*)>(
      name, device, &corrected, &uncorrected, &pending, &failed);
  gpu.remapped_correctable = nvml.answer(result, name, uint64_t{corrected});
  gpu.remapped_uncorrectable = nvml.answer(result, name, uint64_t{uncorrected});
  gpu.remap_pending = nvml.answer(result, name, pending != 0);
  gpu.remap_failed = nvml.answer(result, name, failed != 0);
}

void ask_links(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  gpu.pcie_gen = nvml.number(device, "nvmlDeviceGetCurrPcieLinkGeneration");
  gpu.pcie_gen_max = nvml.number(device, "nvmlDeviceGetMaxPcieLinkGeneration");
  gpu.pcie_width = nvml.number(device, "nvmlDeviceGetCurrPcieLinkWidth");
  gpu.pcie_width_max = nvml.number(device, "nvmlDeviceGetMaxPcieLinkWidth");
  // There is no count: links exist as far as their numbers are accepted.
  const char* name = "nvmlDeviceGetNvLinkState";
  uint32_t total = 0, active = 0;
  int result = k_success;
  for (uint32_t link = 0; link < k_max_links; ++link) {
    uint32_t state = 0;
    result = nvml.call<int(Device, uint32_t, uint32_t*)>(name, device, link, &state);
    if (result != k_success) break;
    ++total;
    active += state != 0 ? 1 : 0;
  }
  if (total > 0) result = k_success;
  gpu.nvlinks_total = nvml.answer(result, name, total);
  gpu.nvlinks_active = nvml.answer(result, name, active);
}

void ask_firmware(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  gpu.vbios = nvml.text(device, "nvmlDeviceGetVbiosVersion");
  gpu.inforom = nvml.text(device, "nvmlDeviceGetInforomImageVersion");
  char version[80] = {};  // NVML_GSP_FIRMWARE_VERSION_BUF_SIZE is 64; there is no size argument
  const char* name = "nvmlDeviceGetGspFirmwareVersion";
  const int result = nvml.call<int(Device, char*)>(name, device, version);
  version[sizeof version - 1] = 0;
  gpu.gsp_firmware = nvml.answer<std::string>(result, name, version);
}

void ask_recovery(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  FieldValue field{};
  field.id = k_field_recovery_action;
  const char* name = "nvmlDeviceGetFieldValues";
  int result = nvml.call<int(Device, int, FieldValue*)>(name, device, 1, &field);
  if (result == k_success) result = field.result;
  gpu.recovery_action =
      named(nvml.answer(result, name, static_cast<uint32_t>(field.value & 0xffffffffu)),
            std::begin(k_recovery_actions), std::end(k_recovery_actions));
}

void ask_fabric(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  FabricInfo info{};
  const char* name = "nvmlDeviceGetGpuFabricInfo";
  const int result = nvml.call<int(Device, FabricInfo*)>(name, device, &info);
  gpu.fabric_state = named(nvml.answer(result, name, uint32_t{info.state}),
                           std::begin(k_fabric_states), std::end(k_fabric_states));
  gpu.fabric_status = nvml.answer(result, name, int{info.status});
}

void ask_clocks(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  const auto clock = [&](const char* name) {
    uint32_t mhz = 0;
    const int result =
        nvml.call<int(Device, uint32_t, uint32_t*)>(name, device, uint32_t{k_clock_sm}, &mhz);
    return nvml.answer(result, name, mhz);
  };
  gpu.clock_max_mhz = clock("nvmlDeviceGetMaxClockInfo");
  gpu.clock_application_mhz = clock("nvmlDeviceGetApplicationsClock");
  gpu.clock_application_default_mhz = clock("nvmlDeviceGetDefaultApplicationsClock");
}

void ask_state(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  ask_condition(nvml, gpu, device);
  gpu.compute_mode = ask_compute_mode(nvml, device);
  gpu.persistence = nvml.flag(device, "nvmlDeviceGetPersistenceMode");
  gpu.display_active = nvml.flag(device, "nvmlDeviceGetDisplayActive");
  auto watts = [&](const char* function) {
    Fact<uint32_t> milliwatts = nvml.number(device, function);
    if (milliwatts) milliwatts.value = (*milliwatts + 500) / 1000;
    return milliwatts;
  };
  gpu.power_watts = watts("nvmlDeviceGetPowerUsage");
  gpu.power_limit_watts = watts("nvmlDeviceGetEnforcedPowerLimit");
}

}  // namespace

void ask_condition(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  uint64_t reasons = 0;
  const char* name = nullptr;
  int result = nvml.call_any<int(Device, uint64_t*)>(
      {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}, name,
      device, &reasons);
  std::vector<std::string> names;
  for (const Named& row : k_throttle_reasons) {
    if (reasons & row.value) names.push_back(row.name);
  }
  gpu.throttle = nvml.answer(result, name, names);
  uint32_t degrees = 0;
  name = "nvmlDeviceGetTemperature";
  result = nvml.call<int(Device, uint32_t, uint32_t*)>(name, device, 0u, &degrees);
  if (result == k_no_symbol || result == k_deprecated || result == k_function_not_found) {
    TemperatureV1 newer{k_temperature_v1, 0, 0};
    name = "nvmlDeviceGetTemperatureV";
    result = nvml.call<int(Device, TemperatureV1*)>(name, device, &newer);
    degrees = static_cast<uint32_t>(std::max(newer.temperature, 0));
  }
  gpu.temperature_c = nvml.answer(result, name, degrees);
}

void ask_gpu(NvmlCalls& nvml, facts::NvmlGpu& gpu) {
  nvml.about(&gpu);
  gpu.state_code = known(0, SourceKind::nvml, "nvmlDeviceGetHandleByIndex_v2");
  Device device = nullptr;
  const char* name = nullptr;
  int result = nvml.call_any<int(uint32_t, Device*)>(
      {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, name, gpu.index, &device);
  if (result != k_success) {
    gpu.state_code = known(result, SourceKind::nvml, name);
    facts::NvmlFacts alone;  // mark_unreached works on a whole NvmlFacts
    alone.gpus.push_back(std::move(gpu));
    mark_unreached(alone, NvmlCalls::why_of(result), name, nvml.text_of(result));
    gpu = std::move(alone.gpus.front());
    return;
  }
  ask_identity(nvml, gpu, device);
  ask_memory(nvml, gpu, device);
  ask_mig(nvml, gpu, device);
  ask_errors(nvml, gpu, device);
  ask_links(nvml, gpu, device);
  ask_state(nvml, gpu, device);
  ask_firmware(nvml, gpu, device);
  ask_recovery(nvml, gpu, device);
  ask_fabric(nvml, gpu, device);
  ask_clocks(nvml, gpu, device);
  gpu.processes = read_processes(nvml.raw(), device);
}

}  // namespace cufit::host
