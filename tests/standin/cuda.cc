// SPDX-License-Identifier: Apache-2.0
// Stand-in libcuda.so.1. Device memory is host memory; kernels are emulated by the name of their
// entry in the PTX that was loaded, with formulas of their own (not the product's). Keys of a GPU
// besides the shared ones: cuda_free (bytes that can be allocated), integrated, corrupt_check (word
// of the check's output with a flipped bit), corrupt_memory (word number of a chunk that never
// holds what is written).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host/driver/cuda_api.h"
#include "machine.h"

using namespace standin;
using namespace cufit::host::cuda;

namespace {

constexpr int k_invalid_value = 1, k_not_initialized = 3, k_no_device = 100, k_invalid_device = 101,
              k_invalid_context = 201, k_no_binary = 209, k_bad_ptx = 218;

struct Visible {
  Gpu* gpu = nullptr;
  const Section* mig = nullptr;
  uint64_t allocated = 0;
};

struct LoadedModule {
  std::string ptx;
};
struct Kernel {
  std::string name;
};

bool g_initialized = false;
std::vector<Visible> g_visible;
Visible* g_current = nullptr;
std::map<Pointer, size_t> g_memory;

// The documented rule: names up to the first that is not a device; a MIG GPU shows as its first
// instance.
void apply_visibility() {
  std::vector<Visible> all;
  for (auto& gpu : machine().gpus) {
    bool mig = gpu->number("mig.current") != 0;
    if (mig && gpu->mig.empty()) continue;
    all.push_back({gpu.get(), mig ? &gpu->mig.front() : nullptr, 0});
  }
  const char* names = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!names) {
    g_visible = all;
    return;
  }
  std::string rest = names;
  while (!rest.empty()) {
    std::string name = rest.substr(0, rest.find(','));
    rest = rest.size() > name.size() ? rest.substr(name.size() + 1) : "";
    auto found = std::find_if(all.begin(), all.end(), [&](const Visible& visible) {
      if (visible.mig && visible.mig->text("uuid") == name) return true;
      return visible.gpu->text("uuid") == name || std::to_string(visible.gpu->index) == name;
    });
    if (found == all.end()) return;
    g_visible.push_back(*found);
  }
}

Visible* visible(Device device) {
  bool exists = device >= 0 && static_cast<size_t>(device) < g_visible.size();
  return exists ? &g_visible[static_cast<size_t>(device)] : nullptr;
}

int enter_device(const char* function, Device device) {
  if (!g_initialized) return k_not_initialized;
  Visible* found = visible(device);
  return found ? enter(function, found->gpu) : k_invalid_device;
}

int enter_context(const char* function) {
  return g_current ? enter(function, g_current->gpu) : k_invalid_context;
}

uint64_t memory_of(const Visible& device) {
  return device.mig ? device.mig->number("memory") : device.gpu->number("memory");
}

uint64_t free_of(const Visible& device) {
  return device.gpu->number("cuda_free", memory_of(device)) - device.allocated;
}

bool inside(Pointer at, size_t bytes) {
  auto block = g_memory.upper_bound(at);
  if (block == g_memory.begin()) return false;
  --block;
  return at + bytes <= block->first + block->second;
}

template <class T>
T argument(void** arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

int run_check(void** arguments, const Section& gpu) {
  Pointer in = argument<Pointer>(arguments, 0), out = argument<Pointer>(arguments, 1);
  uint32_t count = argument<uint32_t>(arguments, 2);
  if (!inside(in, count * 4) || !inside(out, count * 4)) return 700;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t wide = uint64_t{reinterpret_cast<uint32_t*>(in)[i]} * 1664525 + 1013904223;
    reinterpret_cast<uint32_t*>(out)[i] = static_cast<uint32_t>(wide) ^ i;
  }
  if (gpu.has("corrupt_check"))
    reinterpret_cast<uint32_t*>(out)[gpu.number("corrupt_check")] ^= 1u << 17;
  return k_success;
}

int run_memory(void** arguments, const Section& gpu, bool verify) {
  Pointer data = argument<Pointer>(arguments, 0);
  uint64_t words = argument<uint64_t>(arguments, 1), first = argument<uint64_t>(arguments, 2);
  uint64_t flip = argument<uint64_t>(arguments, 3);
  if (!inside(data, words * 8)) return 700;
  uint64_t* word = reinterpret_cast<uint64_t*>(data);
  uint64_t pattern = first * 0x9E3779B97F4A7C15u;
  for (uint64_t i = 0; i < words; ++i, pattern += 0x9E3779B97F4A7C15u) {
    if (!verify) {
      word[i] = pattern ^ flip;
    } else if (word[i] != (pattern ^ flip)) {
      uint32_t* bad = reinterpret_cast<uint32_t*>(argument<Pointer>(arguments, 4));
      *bad = std::min(*bad, static_cast<uint32_t>(i));
    }
  }
  uint64_t broken = gpu.number("corrupt_memory", ~uint64_t{0});
  if (!verify && broken >= first && broken - first < words)
    word[broken - first] |= 0x10;  // a bit stuck at one
  return k_success;
}

}  // namespace

STANDIN_EXPORT int cuDriverGetVersion(int* version) {
  if (int code = enter("cuDriverGetVersion")) return code;
  *version = static_cast<int>(machine().number("cuda"));
  return k_success;
}
STANDIN_EXPORT int cuInit(unsigned) {
  std::printf("noise from the CUDA stand-in\n");  // must not reach cufit's output
  std::fflush(stdout);
  if (int code = enter("cuInit")) return code;
  apply_visibility();
  g_initialized = true;
  return g_visible.empty() ? k_no_device : k_success;
}
STANDIN_EXPORT int cuDeviceGetCount(int* count) {
  if (int code = enter("cuDeviceGetCount")) return code;
  *count = static_cast<int>(g_visible.size());
  return k_success;
}
STANDIN_EXPORT int cuDeviceGet(Device* device, int ordinal) {
  if (int code = enter_device("cuDeviceGet", ordinal)) return code;
  *device = ordinal;
  return k_success;
}
STANDIN_EXPORT int cuDeviceGetName(char* out, int size, Device device) {
  if (int code = enter_device("cuDeviceGetName", device)) return code;
  const Visible& shown = *visible(device);
  std::string name = shown.mig ? shown.mig->text("name") : shown.gpu->text("name");
  std::snprintf(out, static_cast<size_t>(size), "%s", name.c_str());
  return k_success;
}
static int uuid_of(const char* function, Uuid* out, Device device, bool mig) {
  if (int code = enter_device(function, device)) return code;
  const Visible& shown = *visible(device);
  std::string text = mig && shown.mig ? shown.mig->text("uuid") : shown.gpu->text("uuid");
  std::string digits;
  for (char c : text.substr(4)) {
    if (c != '-') digits += c;
  }
  for (size_t i = 0; i < 16 && i * 2 + 1 < digits.size(); ++i) {
    out->bytes[i] =
        static_cast<unsigned char>(std::strtoul(digits.substr(i * 2, 2).c_str(), nullptr, 16));
  }
  return k_success;
}
STANDIN_EXPORT int cuDeviceGetUuid(Uuid* out, Device device) {
  return uuid_of("cuDeviceGetUuid", out, device, false);
}
// Key: peer_access, of all ways.
STANDIN_EXPORT int cuDeviceCanAccessPeer(int* access, Device device, Device) {
  if (int code = enter_device("cuDeviceCanAccessPeer", device)) return code;
  *access = static_cast<int>(visible(device)->gpu->number("peer_access", 1));
  return k_success;
}
STANDIN_EXPORT int cuDeviceGetPCIBusId(char* out, int size, Device device) {
  if (int code = enter_device("cuDeviceGetPCIBusId", device)) return code;
  std::string pci = visible(device)->gpu->text("pci", "0000:01:00.0");
  for (char& c : pci)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));  // as the driver writes it
  std::snprintf(out, static_cast<size_t>(size), "%s", pci.c_str());
  return k_success;
}
STANDIN_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, Device device) {
  if (int code = enter_device("cuDeviceTotalMem_v2", device)) return code;
  *bytes = visible(device)->gpu->number("cuda_total", memory_of(*visible(device)));
  return k_success;
}
STANDIN_EXPORT int cuDeviceGetAttribute(int* value, int attribute, Device device) {
  if (int code = enter_device("cuDeviceGetAttribute", device)) return code;
  const Section& gpu = *visible(device)->gpu;
  int major = 0, minor = 0;
  std::sscanf(gpu.text("cc", "8.9").c_str(), "%d.%d", &major, &minor);
  switch (attribute) {
    case k_attribute_integrated:
      *value = static_cast<int>(gpu.number("integrated"));
      break;
    case k_attribute_major:
      *value = major;
      break;
    case k_attribute_minor:
      *value = minor;
      break;
    default:
      return k_invalid_value;
  }
  return k_success;
}
STANDIN_EXPORT int cuDevicePrimaryCtxRetain(Context* context, Device device) {
  if (int code = enter_device("cuDevicePrimaryCtxRetain", device)) return code;
  *context = visible(device);
  return k_success;
}
STANDIN_EXPORT int cuCtxSetCurrent(Context context) {
  g_current = static_cast<Visible*>(context);
  return enter_context("cuCtxSetCurrent");
}
STANDIN_EXPORT int cuCtxSynchronize() { return enter_context("cuCtxSynchronize"); }
STANDIN_EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (int code = enter_context("cuMemGetInfo_v2")) return code;
  *free = free_of(*g_current), *total = memory_of(*g_current);
  return k_success;
}
STANDIN_EXPORT int cuMemAlloc_v2(Pointer* out, size_t bytes) {
  if (int code = enter_context("cuMemAlloc_v2")) return code;
  if (bytes > free_of(*g_current)) return k_out_of_memory;
  *out = reinterpret_cast<Pointer>(std::malloc(bytes));
  g_memory[*out] = bytes;
  g_current->allocated += bytes;
  return k_success;
}
STANDIN_EXPORT int cuMemFree_v2(Pointer at) {
  if (int code = enter_context("cuMemFree_v2")) return code;
  auto block = g_memory.find(at);
  if (block == g_memory.end()) return k_invalid_value;
  g_current->allocated -= block->second;
  g_memory.erase(block);
  std::free(reinterpret_cast<void*>(at));
  return k_success;
}
STANDIN_EXPORT int cuMemcpyHtoD_v2(Pointer to, const void* from, size_t bytes) {
  if (int code = enter_context("cuMemcpyHtoD_v2")) return code;
  if (!inside(to, bytes)) return k_invalid_value;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return k_success;
}
STANDIN_EXPORT int cuMemcpyDtoH_v2(void* to, Pointer from, size_t bytes) {
  if (int code = enter_context("cuMemcpyDtoH_v2")) return code;
  if (!inside(from, bytes)) return k_invalid_value;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return k_success;
}
STANDIN_EXPORT int cuModuleLoadData(Module* out, const void* image) {
  if (int code = enter_context("cuModuleLoadData")) return code;
  std::string ptx = static_cast<const char*>(image);
  size_t target = ptx.find(".target sm_");
  if (ptx.find(".version ") == std::string::npos || target == std::string::npos) return k_bad_ptx;
  int major = 0, minor = 0;
  std::sscanf(g_current->gpu->text("cc", "8.9").c_str(), "%d.%d", &major, &minor);
  if (std::atoi(ptx.c_str() + target + 11) > major * 10 + minor) return k_no_binary;
  *out = new LoadedModule{std::move(ptx)};
  return k_success;
}
STANDIN_EXPORT int cuModuleGetFunction(Function* out, Module module, const char* name) {
  if (int code = enter_context("cuModuleGetFunction")) return code;
  const std::string& ptx = static_cast<LoadedModule*>(module)->ptx;
  if (ptx.find(std::string(".entry ") + name + "(") == std::string::npos) return k_not_found;
  *out = new Kernel{name};
  return k_success;
}
STANDIN_EXPORT int cuModuleUnload(Module module) {
  delete static_cast<LoadedModule*>(module);
  return enter_context("cuModuleUnload");
}
STANDIN_EXPORT int cuLaunchKernel(Function function, unsigned, unsigned, unsigned, unsigned,
                                  unsigned, unsigned, unsigned, void*, void** arguments, void**) {
  if (int code = enter_context("cuLaunchKernel")) return code;
  const std::string& name = static_cast<Kernel*>(function)->name;
  const Section& gpu = *g_current->gpu;
  if (name == "cufit_check") return run_check(arguments, gpu);
  if (name == "cufit_fill") return run_memory(arguments, gpu, false);
  if (name == "cufit_verify") return run_memory(arguments, gpu, true);
  return 719;
}

// A program that leaves memory behind dies here, so that every test sees it.
static int release(const char* function, Device device) {
  if (!g_memory.empty()) std::abort();
  return enter_device(function, device);
}

#ifdef CUFIT_STANDIN_OLD
STANDIN_EXPORT int cuDevicePrimaryCtxRelease(Device device) {
  return release("cuDevicePrimaryCtxRelease", device);
}
#else
STANDIN_EXPORT int cuDevicePrimaryCtxRelease_v2(Device device) {
  return release("cuDevicePrimaryCtxRelease_v2", device);
}
STANDIN_EXPORT int cuDeviceGetUuid_v2(Uuid* out, Device device) {
  return uuid_of("cuDeviceGetUuid_v2", out, device, true);
}
#endif
