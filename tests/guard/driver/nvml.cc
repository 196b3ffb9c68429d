// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1 of the described card.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "card.h"

using namespace standin;

namespace {

constexpr int k_ok = 0, k_invalid = 2, k_not_supported = 3, k_not_found = 6, k_too_small = 7;

int index_of(void* device) {
  for (auto& gpu : machine().gpus) {
    if (gpu.get() == device) return static_cast<int>(gpu->index);
  }
  return -1;
}

// Held by what the file describes: processes of a display ([process]), and what NVML does not list (`hidden`).
uint64_t elsewhere(int index) {
  const Gpu& gpu = *machine().gpus[static_cast<size_t>(index)];
  uint64_t sum = gpu.number("hidden");
  for (const Section& process : gpu.processes) sum += process.number("used");
  return sum;
}

struct ProcessInfo {
  uint32_t pid;
  uint64_t bytes;
  uint32_t gpu_instance, compute_instance;
};
struct PciInfo {
  char legacy[16];
  uint32_t domain, bus, device, ids, subsystem;
  char address[32];
};

}  // namespace

STANDIN_EXPORT int nvmlInit_v2() { return enter("nvmlInit_v2"); }
STANDIN_EXPORT int nvmlShutdown() { return k_ok; }
STANDIN_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(machine().gpus.size());
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) {
  if (index >= machine().gpus.size()) return k_invalid;
  *out = machine().gpus[index].get();
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  for (auto& gpu : machine().gpus) {
    if (gpu->text("uuid") != uuid) continue;
    *out = gpu.get();
    return k_ok;
  }
  return k_not_found;
}
STANDIN_EXPORT int nvmlDeviceGetUUID(void* device, char* out, unsigned size) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  std::snprintf(out, size, "%s", machine().gpus[static_cast<size_t>(index)]->text("uuid").c_str());
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* out) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  std::string pci = machine().gpus[static_cast<size_t>(index)]->text("pci", "0000:01:00.0");
  std::snprintf(out->address, sizeof out->address, "0000%s", pci.c_str());
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetName(void* device, char* out, unsigned size) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  std::snprintf(out, size, "%s", machine().gpus[static_cast<size_t>(index)]->text("name").c_str());
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetComputeMode(void* device, unsigned* out) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  *out = static_cast<unsigned>(machine().gpus[static_cast<size_t>(index)]->number("compute_mode"));
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetDisplayActive(void* device, unsigned* out) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  *out = static_cast<unsigned>(machine().gpus[static_cast<size_t>(index)]->number("display"));
  return k_ok;
}
// The card keeps a little for itself: CUDA's total is less than NVML's, in truth too.
STANDIN_EXPORT int nvmlDeviceGetMemoryInfo(void* device, uint64_t* out) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  if (machine().gpus[static_cast<size_t>(index)]->number("no_nvml_memory")) return k_not_supported;
  uint64_t total = card::memory(index), used = card::used_by_all(index) + elsewhere(index);
  out[0] = total, out[1] = total - used, out[2] = used;
  return enter("nvmlDeviceGetMemoryInfo");
}
STANDIN_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* device, uint64_t* out) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  if (machine().gpus[static_cast<size_t>(index)]->number("no_nvml_memory")) return k_not_supported;
  uint64_t total = card::memory(index), used = card::used_by_all(index) + elsewhere(index);
  out[1] = total, out[2] = 0, out[3] = total - used, out[4] = used;
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                                           ProcessInfo* out) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  if (machine().number("no_process_memory")) return k_not_supported;
  card::used_by_all(index);  // forgets the dead
  unsigned room = *count;
  *count = 0;
  for (const card::Process& process : card::file().processes) {
    if (process.pid == 0 || process.used[index] == 0) continue;
    if (*count < room) out[*count] = {process.pid, process.used[index], ~0u, ~0u};
    ++*count;
  }
  return *count > room ? k_too_small : k_ok;
}

STANDIN_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count,
                                                            ProcessInfo* out) {
  int index = index_of(device);
  if (index < 0) return k_invalid;
  unsigned room = *count;
  *count = 0;
  for (const Section& process : machine().gpus[static_cast<size_t>(index)]->processes) {
    if (*count < room)
      out[*count] = {static_cast<uint32_t>(process.number("pid")), process.number("used"), ~0u,
                     ~0u};
    ++*count;
  }
  return *count > room ? k_too_small : k_ok;
}
STANDIN_EXPORT int nvmlSystemGetProcessName(unsigned pid, char* out, unsigned size) {
  for (auto& gpu : machine().gpus) {
    for (const Section& process : gpu->processes) {
      if (process.number("pid") != pid) continue;
      std::snprintf(out, size, "%s", process.text("name").c_str());
      return k_ok;
    }
  }
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/cmdline").c_str(), "rb");
  if (!file) return k_not_found;
  out[0] = 0;
  size_t got = std::fread(out, 1, size - 1, file);
  out[got] = 0;  // as real ones: the program, and its arguments behind a zero
  std::fclose(file);
  return k_ok;
}

// The kernel driver's limits on a cgroup (615 and later): kept beside the card's file, for all processes see them.
namespace {

struct SetLimits {
  const char* name_space;
  uint64_t soft, hard;
};
struct GetLimits {
  const char* name_space;
  uint64_t soft, hard, used;
};

std::string limits_file(int index, const char* name_space) {
  std::string name = name_space;
  for (char& c : name) c = c == '/' ? '_' : c;
  const char* card = std::getenv("CUFIT_CARD");
  return std::string(card ? card : "/nowhere") + ".limits" + std::to_string(index) + name;
}

}  // namespace

STANDIN_EXPORT int nvmlDeviceSetMemoryLimits_v1(void* device, SetLimits* in) {
  int index = index_of(device);
  if (index < 0 || !in || !in->name_space) return k_invalid;
  if (machine().number("no_memory_limits")) return k_not_supported;
  if (card::gpu(index).number("no_limit")) return k_not_supported;
  std::FILE* file = std::fopen(limits_file(index, in->name_space).c_str(), "wb");
  if (!file) return k_not_found;
  std::fwrite(&in->soft, sizeof in->soft, 2, file);
  std::fclose(file);
  return k_ok;
}
STANDIN_EXPORT int nvmlDeviceGetMemoryLimits_v1(void* device, GetLimits* out) {
  int index = index_of(device);
  if (index < 0 || !out || !out->name_space) return k_invalid;
  if (machine().number("no_memory_limits")) return k_not_supported;
  out->soft = 0, out->hard = ~uint64_t{0}, out->used = 123 << 20;
  if (std::FILE* file = std::fopen(limits_file(index, out->name_space).c_str(), "rb")) {
    if (std::fread(&out->soft, sizeof out->soft, 2, file) != 2) out->soft = 1;
    std::fclose(file);
  }
  return k_ok;
}
