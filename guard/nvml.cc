// SPDX-License-Identifier: Apache-2.0
#include "nvml.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "objects.h"

namespace guard {
namespace {

struct ProcessInfo {  // nvmlProcessInfo_t of the calls that end in _v3 (driver 510 and later)
  uint32_t pid;
  uint64_t bytes;
  uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);
constexpr uint64_t k_no_number = UINT64_MAX;
constexpr int k_nvml_ok = 0;

using ByUuid = int(const char*, void**);
using Processes = int(void*, uint32_t*, ProcessInfo*);

void* nvml_function(const char* name) {
  Object library;
  return object_of_family(Family::nvml, &library) ? library.function(name) : nullptr;
}

// By its own look-up: a reference to dlopen would be GLIBC_2.34 where the guard is built on such.
bool load_nvml() {
  Object library;
  if (!object_of_family(Family::nvml, &library)) {
    void* found = nullptr;
    each_object([&](const Object& object) {
      if (!starts_with(object.soname, "libc.so") && !starts_with(object.soname, "libdl.so"))
        return false;
      found = object.function("dlopen");
      return found != nullptr;
    });
    using Open = void*(const char*, int);
    if (!found || !reinterpret_cast<Open*>(found)("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL))
      return false;
  }
  auto* init = reinterpret_cast<int (*)()>(nvml_function("nvmlInit_v2"));
  return init && init() == k_nvml_ok;
}

void* device_of(State& all, DeviceState& device) {
  if (load(device.nvml_tried) == 2) return device.nvml_device;
  Held held(all.nvml_lock);
  if (load(device.nvml_tried) == 2) return device.nvml_device;
  static const char k_hex[] = "0123456789abcdef";
  char text[48];
  char* at = append(text, text + sizeof text, device.is_mig ? "MIG-" : "GPU-");
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    *at++ = k_hex[device.uuid[i] >> 4];
    *at++ = k_hex[device.uuid[i] & 15];
  }
  *at = 0;
  void* found = nullptr;
  if (load_nvml()) {
    auto* ask = reinterpret_cast<ByUuid*>(nvml_function("nvmlDeviceGetHandleByUUID"));
    if (!ask || ask(text, &found) != k_nvml_ok) found = nullptr;
  }
  device.nvml_device = found;
  store(device.nvml_tried, 2u);
  return found;
}

uint8_t digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  return 255;
}

bool parse_uuid(const char* text, uint8_t uuid[16]) {
  int digits = 0;
  for (; *text && digits < 32; ++text) {
    if (*text == '-') continue;
    uint8_t value = digit(*text);
    if (value == 255) return false;
    uuid[digits / 2] = static_cast<uint8_t>(digits % 2 ? uuid[digits / 2] | value : value << 4);
    ++digits;
  }
  return digits == 32;
}

}  // namespace

bool nvml_own_bytes(State& all, Device ordinal, uint64_t* bytes) {
  DeviceState* device = device_state(all, ordinal);
  if (!device) return false;
  SavedErrno saved;
  void* handle = device_of(all, *device);
  auto* ask =
      reinterpret_cast<Processes*>(nvml_function("nvmlDeviceGetComputeRunningProcesses_v3"));
  if (!handle || !ask) return false;
  constexpr uint32_t k_room = 1024;
  auto* list = static_cast<ProcessInfo*>(map_pages(k_room * sizeof(ProcessInfo)));
  if (!list) return false;
  uint32_t count = k_room, pid = static_cast<uint32_t>(getpid());
  bool found = false;
  if (ask(handle, &count, list) == k_nvml_ok && count <= k_room) {
    for (uint32_t i = 0; i < count; ++i) {
      if (list[i].pid != pid || list[i].bytes == k_no_number) continue;
      *bytes = list[i].bytes;
      found = true;
    }
  }
  unmap_pages(list, k_room * sizeof(ProcessInfo));
  return found;
}

int nvml_row(State& all, void* nvml_device) {
  using Uuid = int(void*, char*, unsigned);
  auto* ask = reinterpret_cast<Uuid*>(nvml_function("nvmlDeviceGetUUID"));
  char text[96] = "";
  uint8_t uuid[16] = {};
  if (!ask || ask(nvml_device, text, sizeof text) != k_nvml_ok) return k_no_row;
  bool mig = starts_with(text, "MIG-");
  if (!(mig || starts_with(text, "GPU-")) || !parse_uuid(text + 4, uuid)) return k_no_row;
  struct Pci {  // nvmlPciInfo_t: an old short address, numbers, then the full one
    char legacy[16];
    uint32_t domain, bus, device, ids, subsystem;
    char address[32];
  } pci{};
  using PciInfo = int(void*, Pci*);
  auto* where = reinterpret_cast<PciInfo*>(nvml_function("nvmlDeviceGetPciInfo_v3"));
  char short_address[16] = "";
  if (where && where(nvml_device, &pci) == k_nvml_ok) {
    // "00000000:65:00.0" there, "0000:65:00.0" in CUDA and in the domain.
    pci.address[31] = 0;
    const char* from = strnlen(pci.address, 31) > 12 ? pci.address + 4 : pci.address;
    copy_text(short_address, sizeof short_address, from);
    for (char& c : short_address) {
      if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return find_row(all.ledger, uuid, short_address, mig, 0);
}

}  // namespace guard
