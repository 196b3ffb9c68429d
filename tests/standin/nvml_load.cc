// SPDX-License-Identifier: Apache-2.0
// What a GPU does at the moment, of the stand-in libnvidia-ml.so.1. Keys of a GPU: the strings below; `xid.79 = 2`: two
// Xids 79 so far, each an event once; of a [process]: `sm = 40`, per cent.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <utility>

#include <unistd.h>

#include "host/driver/nvml_api.h"
#include "machine.h"

using namespace standin;
using namespace cufit::host::nvml;

namespace {

template <class T>
int give(const char* function, Device device, const char* key, T* out) {
  auto* section = static_cast<Section*>(device);
  if (int code = enter(function, section)) return code;
  if (!section->has(key)) return k_not_supported;
  *out = static_cast<T>(section->number(key));
  return k_success;
}

// What was there before the events are asked for is none.
std::map<std::pair<const Section*, std::string>, uint64_t> given;

// An event that was not given yet.
[[maybe_unused]] bool next_event(EventData* out) {
  for (auto& gpu : machine().gpus) {
    for (const auto& [key, value] : gpu->values) {
      if (key.rfind("xid.", 0) != 0) continue;
      uint64_t& before = given[{gpu.get(), key}];
      if (before >= gpu->number(key)) continue;
      ++before;
      out->device = static_cast<Section*>(gpu.get());
      out->type = k_event_xid;
      out->data = std::strtoull(key.c_str() + 4, nullptr, 10);
      return true;
    }
  }
  return false;
}

[[maybe_unused]] double seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

#define STANDIN_VALUE(function, key)                          \
  STANDIN_EXPORT int function(Device device, uint32_t* out) { \
    return give(#function, device, key, out);                 \
  }

STANDIN_VALUE(nvmlDeviceGetFanSpeed, "fan")
STANDIN_VALUE(nvmlDeviceGetPcieReplayCounter, "pcie_replays")

STANDIN_EXPORT int nvmlDeviceGetUtilizationRates(Device device, Utilization* out) {
  const int code = give("nvmlDeviceGetUtilizationRates", device, "utilization", &out->gpu);
  out->memory = static_cast<uint32_t>(static_cast<Section*>(device)->number("utilization.memory"));
  return code;
}
STANDIN_EXPORT int nvmlDeviceGetTotalEnergyConsumption(Device device, uint64_t* out) {
  return give("nvmlDeviceGetTotalEnergyConsumption", device, "energy_mj", out);
}
STANDIN_EXPORT int nvmlDeviceGetClockInfo(Device device, uint32_t clock, uint32_t* out) {
  return give("nvmlDeviceGetClockInfo", device, clock == k_clock_sm ? "clock.sm" : "clock.memory",
              out);
}
STANDIN_EXPORT int nvmlDeviceGetMaxClockInfo(Device device, uint32_t clock, uint32_t* out) {
  return give("nvmlDeviceGetMaxClockInfo", device,
              clock == k_clock_sm ? "clock_max.sm" : "clock_max.memory", out);
}
STANDIN_EXPORT int nvmlDeviceGetTemperatureThreshold(Device device, uint32_t, uint32_t* out) {
  return give("nvmlDeviceGetTemperatureThreshold", device, "slowdown_temperature", out);
}
// throughput.tx = 5: KiB/s.
STANDIN_EXPORT int nvmlDeviceGetPcieThroughput(Device device, uint32_t counter, uint32_t* out) {
  return give("nvmlDeviceGetPcieThroughput", device,
              counter == 0 ? "throughput.tx" : "throughput.rx", out);
}

// field.74 = 1000: of 64 bits; field32.197 = 1: of 32.
STANDIN_EXPORT int nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  auto* section = static_cast<Section*>(device);
  if (int code = enter("nvmlDeviceGetFieldValues", section)) return code;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(fields[i].id);
    const bool wide = section->has("field." + number);
    const bool narrow = section->has("field32." + number);
    fields[i].result = wide || narrow ? k_success : k_not_supported;
    fields[i].type = wide ? 3 : 1;
    fields[i].value = section->number((wide ? "field." : "field32.") + number);
  }
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetProcessUtilization(Device device, ProcessUse* out, uint32_t* count,
                                                   uint64_t) {
  if (int code = enter("nvmlDeviceGetProcessUtilization", static_cast<Section*>(device)))
    return code;
  const Gpu* gpu = nullptr;
  for (auto& one : machine().gpus)
    if (static_cast<Section*>(one.get()) == device) gpu = one.get();
  if (gpu == nullptr) return k_not_supported;
  uint32_t found = 0;
  for (const Section& process : gpu->processes) {
    if (!process.has("sm")) continue;
    if (found < *count && out != nullptr)
      out[found] = {static_cast<uint32_t>(process.number("pid")),
                    1,
                    static_cast<uint32_t>(process.number("sm")),
                    0,
                    0,
                    0};
    ++found;
  }
  const bool room = found <= *count && out != nullptr;
  *count = found;
  return found == 0 ? k_not_supported : room ? k_success : k_insufficient_size;
}

#ifndef CUFIT_STANDIN_OLD
STANDIN_EXPORT int nvmlEventSetCreate(void** out) {
  static int set;
  *out = &set;
  const int code = enter("nvmlEventSetCreate");
  for (auto& gpu : machine().gpus)
    for (const auto& [key, value] : gpu->values)
      if (key.rfind("xid.", 0) == 0) given[{gpu.get(), key}] = gpu->number(key);
  return code;
}
STANDIN_EXPORT int nvmlDeviceRegisterEvents(Device device, uint64_t, void*) {
  return enter("nvmlDeviceRegisterEvents", static_cast<Section*>(device));
}
STANDIN_EXPORT int nvmlEventSetWait_v2(void*, EventData* out, uint32_t milliseconds) {
  const double end = seconds() + milliseconds / 1000.0;
  while (true) {
    if (int code = enter("nvmlEventSetWait_v2")) return code;
    if (next_event(out)) return k_success;
    if (seconds() >= end) return k_timeout;
    usleep(5'000);
  }
}
#endif
