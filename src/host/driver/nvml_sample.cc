// SPDX-License-Identifier: Apache-2.0
#include "host/driver/nvml_sample.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iterator>
#include <vector>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/driver/nvml_sample_values.h"

namespace cufit::host {
namespace {

using namespace nvml;

constexpr uint32_t k_most_cards = 64, k_most_card_instances = 64;
constexpr double k_xid_seconds = 0.1;    // an Xid is told at once, with those that come with it
constexpr uint32_t k_most_events = 256;  // of one sample: the next one takes the others

double epoch_seconds() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void sleep_for(double seconds) {
  const double whole = std::floor(std::max(seconds, 0.0));
  timespec pause{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  if (seconds > 0) nanosleep(&pause, nullptr);
}

std::optional<double> thousandth(std::optional<uint32_t> value) {
  if (!value) return std::nullopt;
  return *value / 1000.0;
}

}  // namespace

void NvmlSample::note_missing(const std::string& what, const std::string& why) {
  missing_.emplace(what, why);
}

bool NvmlSample::open(const std::string& library_dir) {
  const Fact<std::string> library = calls_.open(library_dir, "libnvidia-ml.so.1", SourceKind::nvml);
  if (!library) {
    note_missing("NVML", formats::printable(library.note, 300));
    return false;
  }
  const char* name = nullptr;
  const int result = nvml_.call_any<int()>({"nvmlInit_v2", "nvmlInit"}, name);
  if (result != k_success) {
    note_missing("NVML", format("{}: {}", name, formats::printable(nvml_.text_of(result), 200)));
    return false;
  }
  char version[80] = {};
  if (nvml_.call<int(char*, uint32_t)>("nvmlSystemGetDriverVersion", version,
                                       uint32_t{sizeof version}) == k_success)
    driver_version_ = formats::printable(std::string(version, strnlen(version, sizeof version)));
  nvml_.call<int(void**)>("nvmlEventSetCreate", &events_);
  started_ = true;
  return true;
}

facts::GpuSample NvmlSample::take() {
  facts::GpuSample out;
  out.time = epoch_seconds();
  out.driver_version = driver_version_;
  const double begun = calls_.seconds();
  if (started_) {
    missing_.clear();
    uint32_t count = 0;
    const char* name = nullptr;
    const int result = nvml_.call_any<int(uint32_t*)>(
        {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, name, &count);
    if (result != k_success) note_missing("GPUs", format("{}: {}", name, nvml_.text_of(result)));
    for (uint32_t i = 0; i < std::min(count, k_most_cards); ++i) take_gpu(i, out);
  }
  for (const auto& [where, times] : xids_) out.xids.push_back({where.first, where.second, times});
  for (const auto& [what, why] : missing_) out.missing.push_back({what, why});
  out.driver_seconds = calls_.seconds() - begun;
  return out;
}

void NvmlSample::take_gpu(uint32_t index, facts::GpuSample& out) {
  asked_ = format("gpu {}: ", index);
  facts::NvmlGpu about;  // takes note of what is about the GPU itself
  nvml_.about(&about);
  Device device = nullptr;
  const char* name = nullptr;
  const int result = nvml_.call_any<int(uint32_t, Device*)>(
      {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, name, index, &device);
  if (result != k_success) {
    facts::SampledGpu lost = before_[uuid_of_[index]].fixed;
    lost.index = index;
    lost.lost = result;
    note_missing(asked_ + "all", format("{}: {}", name, nvml_.text_of(result)));
    out.gpus.push_back(std::move(lost));
    return;
  }
  const std::string uuid = taken(nvml_.text(device, "nvmlDeviceGetUUID"), "uuid").value_or("");
  uuid_of_[index] = uuid;
  Before& before = before_[uuid];
  if (before.fixed.uuid.empty()) {
    before.fixed.index = index;
    before.fixed.uuid = formats::printable(uuid, 96);
    ask_fixed(device, before.fixed);
  }
  facts::SampledGpu gpu = before.fixed;
  gpu.index = index;
  watch_events(device, gpu, before);
  take_dear(device, gpu, before);
  ask_load(device, gpu);
  ask_fields(device, gpu, before);
  ask_links(device, gpu);
  ask_errors(device, gpu);
  ask_memory(device, gpu);
  const auto place = static_cast<uint32_t>(out.gpus.size());
  out.gpus.push_back(gpu);
  if (before.divided) {
    take_instances(device, gpu, out);
  } else {
    ask_processes(device, place, out);
    ask_use(device, place, before, out);
  }
  if (about.state_code.value_or(0) != 0) out.gpus[place].lost = *about.state_code;
  nvml_.about(nullptr);
}

// Rows of their own: what they have and who uses them. Heat, power and clocks are their GPU's.
void NvmlSample::take_instances(Device device, const facts::SampledGpu& card,
                                facts::GpuSample& out) {
  const uint32_t most = nvml_.number(device, "nvmlDeviceGetMaxMigDeviceCount").value_or(0);
  const std::string of_card = asked_;
  for (uint32_t i = 0; i < std::min(most, k_most_card_instances); ++i) {
    Device mig = nullptr;
    if (nvml_.call<int(Device, uint32_t, Device*)>("nvmlDeviceGetMigDeviceHandleByIndex", device, i,
                                                   &mig) != k_success)
      continue;  // numbers that are not in use
    asked_ = format("{}instance {}: ", of_card, i);
    facts::SampledGpu gpu;
    gpu.index = card.index;
    gpu.pci = card.pci;
    gpu.parent_uuid = card.uuid;
    gpu.uuid = formats::printable(nvml_.text(mig, "nvmlDeviceGetUUID").value_or(""), 96);
    const std::string name = nvml_.text(mig, "nvmlDeviceGetName").value_or("");
    const size_t at = name.rfind(" MIG ");  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    gpu.profile = formats::printable(at == std::string::npos ? name : name.substr(at + 5), 64);
    gpu.name = card.name;
    gpu.gpu_instance = taken(nvml_.number(mig, "nvmlDeviceGetGpuInstanceId"), "gpu_instance");
    ask_memory(mig, gpu);
    const auto place = static_cast<uint32_t>(out.gpus.size());
    out.gpus.push_back(std::move(gpu));
    ask_processes(mig, place, out);
  }
  asked_ = of_card;
}

void NvmlSample::ask_fixed(Device device, facts::SampledGpu& gpu) {
  facts::NvmlGpu told;
  PciInfo pci{};
  const char* name = nullptr;
  const int result = nvml_.call_any<int(Device, PciInfo*)>(
      {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}, name, device,
      &pci);
  if (result == k_success) {
    gpu.pci = format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
    pci_of_[device] = gpu.pci.substr(0, gpu.pci.size() - 2);
  }
  gpu.name = formats::printable(nvml_.text(device, "nvmlDeviceGetName").value_or(""), 96);
  const auto most = [&](uint32_t clock) -> std::optional<uint32_t> {
    uint32_t mhz = 0;
    const int code = nvml_.call<int(Device, uint32_t, uint32_t*)>("nvmlDeviceGetMaxClockInfo",
                                                                  device, clock, &mhz);
    return taken(nvml_.answer(code, "nvmlDeviceGetMaxClockInfo", mhz), "clock_max_mhz");
  };
  gpu.sm_clock_max_mhz = most(k_clock_sm);
  gpu.memory_clock_max_mhz = most(k_clock_memory);
  uint32_t degrees = 0;
  const char* const slowdown = "nvmlDeviceGetTemperatureThreshold";
  const int code = nvml_.call<int(Device, uint32_t, uint32_t*)>(slowdown, device,
                                                                k_threshold_slowdown, &degrees);
  if (const auto limit = taken(nvml_.answer(code, slowdown, degrees), "slowdown_temperature_c"))
    gpu.slowdown_temperature_c = static_cast<int32_t>(*limit);
  gpu.pcie_gen_max =
      taken(nvml_.number(device, "nvmlDeviceGetMaxPcieLinkGeneration"), "pcie_gen_max");
  gpu.pcie_width_max =
      taken(nvml_.number(device, "nvmlDeviceGetMaxPcieLinkWidth"), "pcie_width_max");
}

void NvmlSample::ask_memory(Device device, facts::SampledGpu& gpu) {
  facts::NvmlGpu told;
  host::ask_memory(nvml_, told, device);
  gpu.memory_total_bytes = taken(std::move(told.memory_total_bytes), "memory_total_bytes");
  gpu.memory_used_bytes = taken(std::move(told.memory_used_bytes), "memory_used_bytes");
  gpu.memory_free_bytes = taken(std::move(told.memory_free_bytes), "memory_free_bytes");
  gpu.memory_reserved_bytes = taken(std::move(told.memory_reserved_bytes), "memory_reserved_bytes");
}

void NvmlSample::ask_load(Device device, facts::SampledGpu& gpu) {
  Utilization use{};
  const char* const name = "nvmlDeviceGetUtilizationRates";
  const int result = nvml_.call<int(Device, Utilization*)>(name, device, &use);
  gpu.utilization = part_of_percent(taken(nvml_.answer(result, name, use.gpu), "utilization"));
  if (gpu.utilization) gpu.memory_utilization = part_of_percent(use.memory);
  gpu.power_watts =
      thousandth(taken(nvml_.number(device, "nvmlDeviceGetPowerUsage"), "power_watts"));
  gpu.power_limit_watts = thousandth(
      taken(nvml_.number(device, "nvmlDeviceGetEnforcedPowerLimit"), "power_limit_watts"));
  facts::NvmlGpu told;
  ask_condition(nvml_, told, device);
  if (const auto heat = taken(std::move(told.temperature_c), "temperature_c"))
    if (*heat < k_most_degrees) gpu.temperature_c = static_cast<int32_t>(*heat);
  gpu.throttle = taken(std::move(told.throttle), "throttle");
  gpu.compute_mode = taken(ask_compute_mode(nvml_, device), "compute_mode");
  const auto clock = [&](uint32_t which, const char* what) -> std::optional<uint32_t> {
    uint32_t mhz = 0;
    const int code =
        nvml_.call<int(Device, uint32_t, uint32_t*)>("nvmlDeviceGetClockInfo", device, which, &mhz);
    return taken(nvml_.answer(code, "nvmlDeviceGetClockInfo", mhz), what);
  };
  gpu.sm_clock_mhz = clock(k_clock_sm, "sm_clock_mhz");
  gpu.memory_clock_mhz = clock(k_clock_memory, "memory_clock_mhz");
}

void NvmlSample::ask_links(Device device, facts::SampledGpu& gpu) {
  gpu.pcie_gen = taken(nvml_.number(device, "nvmlDeviceGetCurrPcieLinkGeneration"), "pcie_gen");
  gpu.pcie_width = taken(nvml_.number(device, "nvmlDeviceGetCurrPcieLinkWidth"), "pcie_width");
  uint32_t total = 0, active = 0;
  for (uint32_t link = 0; link < k_max_links; ++link) {
    uint32_t state = 0;
    if (nvml_.call<int(Device, uint32_t, uint32_t*)>("nvmlDeviceGetNvLinkState", device, link,
                                                     &state) != k_success)
      break;
    ++total;
    active += state != 0 ? 1 : 0;
  }
  if (total == 0) return;
  gpu.nvlinks = total;
  gpu.nvlinks_active = active;
}

void NvmlSample::ask_errors(Device device, facts::SampledGpu& gpu) {
  constexpr int k_corrected = 0, k_uncorrected = 1, k_since_boot = 0;
  const char* const name = "nvmlDeviceGetTotalEccErrors";
  const auto errors = [&](int type, const char* what) {
    uint64_t count = 0;
    const int result =
        nvml_.call<int(Device, int, int, uint64_t*)>(name, device, type, k_since_boot, &count);
    return taken(nvml_.answer(result, name, count), what);
  };
  gpu.ecc_corrected = errors(k_corrected, "ecc_corrected");
  gpu.ecc_uncorrected = errors(k_uncorrected, "ecc_uncorrected");
  uint32_t corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  const int result = nvml_.call<int(Device, uint32_t*, uint32_t*, uint32_t*, uint32_t*)>(
      "nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed);
  if (!taken(nvml_.answer(result, "nvmlDeviceGetRemappedRows", failed), "remapped_rows")) return;
  gpu.remapped_corrected = corrected;
  gpu.remapped_uncorrected = uncorrected;
  gpu.remap_pending = pending != 0;
  gpu.remap_failed = failed != 0;
}

void NvmlSample::watch_events(Device device, const facts::SampledGpu& gpu, Before& before) {
  if (events_ == nullptr || before.watched) return;
  before.watched = true;
  pci_of_[device] = gpu.pci.substr(0, gpu.pci.find('.'));
  nvml_.call<int(Device, uint64_t, void*)>("nvmlDeviceRegisterEvents", device, k_event_xid,
                                           events_);
}

void NvmlSample::wait(double seconds) {
  double end = DriverCalls::now() + seconds;
  // What is there is taken also where samples take longer than the interval.
  for (uint32_t taken = 0; events_ != nullptr && taken < k_most_events; ++taken) {
    const double left = std::max(end - DriverCalls::now(), 0.0);
    EventData event{};
    const char* name = nullptr;
    const int result = nvml_.call_any<int(void*, EventData*, uint32_t)>(
        {"nvmlEventSetWait_v2", "nvmlEventSetWait"}, name, events_, &event,
        static_cast<uint32_t>(std::ceil(left * 1000)));
    if (result == k_timeout) return;
    if (result != k_success) break;  // it cannot wait: no GPU has events
    if ((event.type & k_event_xid) == 0) continue;
    ++xids_[{pci_of_[event.device], static_cast<uint32_t>(event.data)}];
    end = std::min(end, DriverCalls::now() + k_xid_seconds);
  }
  sleep_for(end - DriverCalls::now());
}

}  // namespace cufit::host
