// SPDX-License-Identifier: Apache-2.0
// Stand-in libnvidia-ml.so.1. Keys of a GPU: the strings below. Pairs: <key>.current,
// <key>.pending.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "host/driver/nvml_api.h"
#include "machine.h"

using namespace standin;
using namespace cufit::host::nvml;

namespace {

// A device handle is a Section: a GPU's, or a MIG instance's.
Section* section_of(Device device) { return static_cast<Section*>(device); }

Gpu* gpu_of(Device device) {
  for (auto& gpu : machine().gpus) {
    if (static_cast<Section*>(gpu.get()) == device) return gpu.get();
  }
  return nullptr;
}

int give_text(const char* function, Device device, const char* key, char* out, uint32_t size) {
  Section* section = section_of(device);
  if (int code = enter(function, section)) return code;
  if (!section->has(key)) return k_not_supported;
  std::string text = section->text(key);
  if (text.size() + 1 > size) return k_insufficient_size;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return k_success;
}

template <class T>
int give_number(const char* function, Device device, const char* key, T* out) {
  Section* section = section_of(device);
  if (int code = enter(function, section)) return code;
  if (!section->has(key)) return k_not_supported;
  *out = static_cast<T>(section->number(key));
  return k_success;
}

int give_pair(const char* function, Device device, const std::string& key, uint32_t* current,
              uint32_t* pending) {
  if (int code = give_number(function, device, (key + ".current").c_str(), current)) return code;
  *pending = static_cast<uint32_t>(section_of(device)->number(key + ".pending", *current));
  return k_success;
}

int init(const char* function) {
  std::printf("noise from the NVML stand-in\n");  // must not reach cufit's output
  std::fflush(stdout);
  return enter(function);
}

int count(const char* function, uint32_t* out) {
  if (int code = enter(function)) return code;
  *out = static_cast<uint32_t>(machine().gpus.size());
  return k_success;
}

int handle(const char* function, uint32_t index, Device* out) {
  if (index >= machine().gpus.size()) return k_invalid_argument;
  Section* gpu = machine().gpus[index].get();
  if (int code = enter(function, gpu)) return code;
  *out = gpu;
  return k_success;
}

int pci_info(const char* function, Device device, PciInfo* out, size_t size) {
  char bytes[sizeof(PciInfo)] = {};
  PciInfo info{};
  std::string bus;
  Section* section = section_of(device);
  if (int code = enter(function, section)) return code;
  bus = section->text("pci", "0000:01:00.0");
  if (std::sscanf(bus.c_str(), "%x:%x:%x", &info.domain, &info.bus, &info.device) != 3)
    return k_unknown;
  std::memcpy(bytes, &info, sizeof info);
  std::memcpy(out, bytes, size);
  return k_success;
}

// Writes entries of `stride` bytes and nothing else, as the real versions do.
int processes(const char* function, Device device, const char* kind, uint32_t* count,
              unsigned char* out, size_t stride) {
  Gpu* gpu = gpu_of(device);
  if (!gpu) return k_invalid_argument;
  if (int code = enter(function, gpu)) return code;
  std::vector<const Section*> found;
  for (const Section& process : gpu->processes) {
    if (process.text("kind", "compute").find(kind) != std::string::npos) found.push_back(&process);
  }
  uint32_t room = *count;
  *count = static_cast<uint32_t>(found.size());
  if (room < found.size()) return k_insufficient_size;
  for (size_t i = 0; i < found.size(); ++i) {
    unsigned char entry[32] = {};
    uint32_t pid = static_cast<uint32_t>(found[i]->number("pid"));
    uint64_t used = found[i]->number("used", k_not_available);
    std::memcpy(entry, &pid, 4);
    std::memcpy(entry + 8, &used, 8);
    std::memset(entry + 16, 0xFF, 8);  // no MIG instance
    std::memcpy(out + i * stride, entry, stride);
  }
  return k_success;
}

}  // namespace

STANDIN_EXPORT int nvmlInit() { return init("nvmlInit"); }
STANDIN_EXPORT int nvmlShutdown() { return enter("nvmlShutdown"); }
STANDIN_EXPORT const char* nvmlErrorString(int code) {
  switch (code) {
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    case 16:
      return "GPU requires reset";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}
STANDIN_EXPORT int nvmlSystemGetDriverVersion(char* out, uint32_t size) {
  return give_text("nvmlSystemGetDriverVersion", static_cast<Section*>(&machine()), "driver", out,
                   size);
}
STANDIN_EXPORT int nvmlSystemGetCudaDriverVersion(int* out) {
  return give_number("nvmlSystemGetCudaDriverVersion", static_cast<Section*>(&machine()), "cuda",
                     out);
}
STANDIN_EXPORT int nvmlSystemGetProcessName(uint32_t pid, char* out, uint32_t size) {
  if (int code = enter("nvmlSystemGetProcessName")) return code;
  for (auto& gpu : machine().gpus) {
    for (Section& process : gpu->processes) {
      if (process.number("pid") == pid && process.has("name")) {
        std::snprintf(out, size, "%s", process.text("name").c_str());
        return k_success;
      }
    }
  }
  return k_not_found;
}
STANDIN_EXPORT int nvmlDeviceGetCount(uint32_t* out) { return count("nvmlDeviceGetCount", out); }
STANDIN_EXPORT int nvmlDeviceGetHandleByIndex(uint32_t index, Device* out) {
  return handle("nvmlDeviceGetHandleByIndex", index, out);
}
STANDIN_EXPORT int nvmlDeviceGetPciInfo_v2(Device device, PciInfo* out) {
  return pci_info("nvmlDeviceGetPciInfo_v2", device, out, 52);
}

// One function per text and per number; the name, the key and the type are all that differ.
#define STANDIN_TEXT(function, key)                                      \
  STANDIN_EXPORT int function(Device device, char* out, uint32_t size) { \
    return give_text(#function, device, key, out, size);                 \
  }
#define STANDIN_NUMBER(function, key)                         \
  STANDIN_EXPORT int function(Device device, uint32_t* out) { \
    return give_number(#function, device, key, out);          \
  }

STANDIN_TEXT(nvmlDeviceGetName, "name")
STANDIN_TEXT(nvmlDeviceGetUUID, "uuid")
STANDIN_TEXT(nvmlDeviceGetSerial, "serial")
STANDIN_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
STANDIN_TEXT(nvmlDeviceGetInforomImageVersion, "inforom")
STANDIN_NUMBER(nvmlDeviceGetBrand, "brand")
STANDIN_NUMBER(nvmlDeviceGetMinorNumber, "minor")
STANDIN_NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retirement_pending")
STANDIN_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen")
STANDIN_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max")
STANDIN_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
STANDIN_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
STANDIN_NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
STANDIN_NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
STANDIN_NUMBER(nvmlDeviceGetDisplayActive, "display_active")
STANDIN_NUMBER(nvmlDeviceGetPowerUsage, "power_mw")
STANDIN_NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")

STANDIN_EXPORT int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  std::string text = section_of(device)->text("cc", "8.9");
  if (int code = enter("nvmlDeviceGetCudaComputeCapability", section_of(device))) return code;
  return std::sscanf(text.c_str(), "%d.%d", major, minor) == 2 ? k_success : k_unknown;
}
STANDIN_EXPORT int nvmlDeviceGetMemoryInfo(Device device, Memory* out) {
  if (int code = give_number("nvmlDeviceGetMemoryInfo", device, "memory", &out->total)) return code;
  const Section& section = *section_of(device);
  out->used = section.number("used") + section.number("reserved");
  out->free = out->total - out->used;
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetEccMode(Device device, uint32_t* current, uint32_t* pending) {
  return give_pair("nvmlDeviceGetEccMode", device, "ecc", current, pending);
}
STANDIN_EXPORT int nvmlDeviceGetTotalEccErrors(Device device, int type, int counter,
                                               uint64_t* out) {
  std::string key = std::string(type == 0 ? "corrected" : "uncorrected") +
                    (counter == 0 ? ".volatile" : ".aggregate");
  return give_number("nvmlDeviceGetTotalEccErrors", device, key.c_str(), out);
}
STANDIN_EXPORT int nvmlDeviceGetNvLinkState(Device device, uint32_t link, uint32_t* active) {
  uint32_t total = 0;
  if (int code = give_number("nvmlDeviceGetNvLinkState", device, "nvlinks", &total)) return code;
  if (link >= total) return k_invalid_argument;
  *active = link < section_of(device)->number("nvlinks.active", total) ? 1 : 0;
  return k_success;
}
// Keys: nvlink_version; nvlink_remote = "switch" or a PCI address, of all links; topology, p2p,
// p2p_nvlink: of all ways.
STANDIN_EXPORT int nvmlDeviceGetNvLinkVersion(Device device, uint32_t, uint32_t* out) {
  return give_number("nvmlDeviceGetNvLinkVersion", device, "nvlink_version", out);
}
STANDIN_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(Device device, uint32_t, uint32_t* out) {
  if (int code = enter("nvmlDeviceGetNvLinkRemoteDeviceType", section_of(device))) return code;
  if (!section_of(device)->has("nvlink_remote")) return k_not_supported;
  *out = section_of(device)->text("nvlink_remote") == "switch" ? 2 : 0;
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, uint32_t, PciInfo* out) {
  if (int code = enter("nvmlDeviceGetNvLinkRemotePciInfo_v2", section_of(device))) return code;
  const std::string bus = section_of(device)->text("nvlink_remote");
  if (std::sscanf(bus.c_str(), "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3)
    return k_not_supported;
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetTopologyCommonAncestor(Device a, Device, uint32_t* out) {
  return give_number("nvmlDeviceGetTopologyCommonAncestor", a, "topology", out);
}
STANDIN_EXPORT int nvmlDeviceGetP2PStatus(Device a, Device, uint32_t what, uint32_t* out) {
  return give_number("nvmlDeviceGetP2PStatus", a, what == 2 ? "p2p_nvlink" : "p2p", out);
}
STANDIN_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, uint64_t* out) {
  return give_number("nvmlDeviceGetCurrentClocksThrottleReasons", device, "throttle", out);
}
STANDIN_EXPORT int nvmlDeviceGetTemperature(Device device, uint32_t sensor, uint32_t* out) {
  if (sensor != 0) return k_invalid_argument;
  return give_number("nvmlDeviceGetTemperature", device, "temperature", out);
}
STANDIN_EXPORT int nvmlDeviceGetComputeRunningProcesses(Device device, uint32_t* count,
                                                        unsigned char* out) {
  return processes("nvmlDeviceGetComputeRunningProcesses", device, "compute", count, out, 16);
}
STANDIN_EXPORT int nvmlDeviceGetGraphicsRunningProcesses(Device device, uint32_t* count,
                                                         unsigned char* out) {
  return processes("nvmlDeviceGetGraphicsRunningProcesses", device, "graphics", count, out, 16);
}

STANDIN_EXPORT int nvmlDeviceGetApplicationsClock(Device device, uint32_t, uint32_t* out) {
  return give_number("nvmlDeviceGetApplicationsClock", device, "clock_application", out);
}
STANDIN_EXPORT int nvmlDeviceGetDefaultApplicationsClock(Device device, uint32_t, uint32_t* out) {
  return give_number("nvmlDeviceGetDefaultApplicationsClock", device, "clock_application_default",
                     out);
}

#ifndef CUFIT_STANDIN_OLD
STANDIN_EXPORT int nvmlDeviceGetGspFirmwareVersion(Device device, char* out) {
  return give_text("nvmlDeviceGetGspFirmwareVersion", device, "gsp_firmware", out, 64);
}
// fabric = 3: the state; fabric.status = 999: what became of the registration.
STANDIN_EXPORT int nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* out) {
  *out = {};
  if (int code = give_number("nvmlDeviceGetGpuFabricInfo", device, "fabric", &out->state))
    return code;
  out->status = static_cast<int32_t>(section_of(device)->number("fabric.status"));
  return k_success;
}
STANDIN_EXPORT int nvmlInit_v2() { return init("nvmlInit_v2"); }
STANDIN_EXPORT int nvmlInitWithFlags(uint32_t) { return init("nvmlInit_v2"); }
STANDIN_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* out) {
  return give_number("nvmlSystemGetCudaDriverVersion_v2", static_cast<Section*>(&machine()), "cuda",
                     out);
}
STANDIN_EXPORT int nvmlDeviceGetCount_v2(uint32_t* out) {
  return count("nvmlDeviceGetCount_v2", out);
}
STANDIN_EXPORT int nvmlDeviceGetHandleByIndex_v2(uint32_t index, Device* out) {
  return handle("nvmlDeviceGetHandleByIndex_v2", index, out);
}
STANDIN_EXPORT int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* out) {
  return pci_info("nvmlDeviceGetPciInfo_v3", device, out, sizeof(PciInfo));
}
STANDIN_EXPORT int nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* out) {
  if (out->version != k_memory_v2) return k_argument_version_mismatch;
  if (int code = give_number("nvmlDeviceGetMemoryInfo_v2", device, "memory", &out->total))
    return code;
  const Section& section = *section_of(device);
  out->used = section.number("used"), out->reserved = section.number("reserved");
  out->free = out->total - out->used - out->reserved;
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetMigMode(Device device, uint32_t* current, uint32_t* pending) {
  return give_pair("nvmlDeviceGetMigMode", device, "mig", current, pending);
}
STANDIN_EXPORT int nvmlDeviceGetMaxMigDeviceCount(Device device, uint32_t* out) {
  if (int code = enter("nvmlDeviceGetMaxMigDeviceCount", section_of(device))) return code;
  *out = 7;
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(Device device, uint32_t index, Device* out) {
  Gpu* gpu = gpu_of(device);
  if (int code = enter("nvmlDeviceGetMigDeviceHandleByIndex", gpu)) return code;
  if (!gpu || index >= gpu->mig.size()) return k_not_found;
  *out = &gpu->mig[index];
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetGpuInstanceId(Device device, uint32_t* out) {
  return give_number("nvmlDeviceGetGpuInstanceId", device, "gpu_instance", out);
}
STANDIN_EXPORT int nvmlDeviceGetRemappedRows(Device device, uint32_t* corrected,
                                             uint32_t* uncorrected, uint32_t* pending,
                                             uint32_t* failed) {
  if (int code = give_number("nvmlDeviceGetRemappedRows", device, "remapped.corrected", corrected))
    return code;
  const Section& section = *section_of(device);
  *uncorrected = static_cast<uint32_t>(section.number("remapped.uncorrected"));
  *pending = static_cast<uint32_t>(section.number("remapped.pending"));
  *failed = static_cast<uint32_t>(section.number("remapped.failed"));
  return k_success;
}
STANDIN_EXPORT int nvmlDeviceGetCurrentClocksEventReasons(Device device, uint64_t* out) {
  return give_number("nvmlDeviceGetCurrentClocksEventReasons", device, "throttle", out);
}
STANDIN_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(Device device, uint32_t* count,
                                                           unsigned char* out) {
  return processes("nvmlDeviceGetComputeRunningProcesses_v2", device, "compute", count, out, 24);
}
STANDIN_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, uint32_t* count,
                                                            unsigned char* out) {
  return processes("nvmlDeviceGetGraphicsRunningProcesses_v2", device, "graphics", count, out, 24);
}
// process_stride = 32: drivers 535.43 to 535.86.
STANDIN_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(Device device, uint32_t* count,
                                                           unsigned char* out) {
  return processes("nvmlDeviceGetComputeRunningProcesses_v3", device, "compute", count, out,
                   machine().number("process_stride", 24));
}
STANDIN_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, uint32_t* count,
                                                            unsigned char* out) {
  return processes("nvmlDeviceGetGraphicsRunningProcesses_v3", device, "graphics", count, out,
                   machine().number("process_stride", 24));
}
#endif
