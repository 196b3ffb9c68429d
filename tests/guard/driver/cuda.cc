// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 of the described cards: devices, contexts, plain allocations, arrays. Structures by their layout in
// cuda.h, written down again here so that the guard's own are not taken for granted.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <string>

#include "model.h"
#include "lookup.h"

using namespace model;
using standin::enter;
using standin::machine;

#define LOCKED std::lock_guard<std::recursive_mutex> locked(process().mutex)
#define ENTER(name) \
  LOCKED;           \
  if (int code = enter(name)) return code
#define IN_CONTEXT(name) \
  ENTER(name);           \
  if (!t_current) return k_invalid_context

namespace {

thread_local std::vector<Context*> t_pushed;

bool is_device(int ordinal) { return ordinal >= 0 && ordinal < card::visible_count(); }

uint64_t page_round(uint64_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

// Below 1 MiB blocks share pages of 2 MiB.
bool take_block(int ordinal, uint64_t bytes, bool* small) {
  *small = bytes < k_mib;
  if (!*small) return take(ordinal, page_round(bytes));
  Device& owner = device(ordinal);
  uint64_t packed = (bytes + 511) / 512 * 512;
  uint64_t more = page_round(owner.small_bytes + packed) - page_round(owner.small_bytes);
  if (more && !take(ordinal, more)) return false;
  owner.small_bytes += packed;
  return true;
}

void give_block(int ordinal, uint64_t bytes, bool small) {
  if (!small) return give(ordinal, page_round(bytes));
  Device& owner = device(ordinal);
  uint64_t before = page_round(owner.small_bytes);
  owner.small_bytes -= (bytes + 511) / 512 * 512;
  if (before != page_round(owner.small_bytes))
    give(ordinal, before - page_round(owner.small_bytes));
}

int allocate(uint64_t* out, uint64_t bytes) {
  if (!out || bytes == 0) return k_invalid;
  Block block;
  block.device = t_current->device, block.bytes = bytes < k_mib ? bytes : page_round(bytes);
  block.context = t_current;
  if (bytes > card::memory(card::physical(block.device)) ||
      !take_block(block.device, bytes, &block.small))
    return k_out_of_memory;
  *out = new_address(bytes);
  process().blocks[*out] = block;
  return k_ok;
}

uint64_t array_bytes(size_t width, size_t height, size_t depth, unsigned format,
                     unsigned channels) {
  uint64_t element = (format == 0x03 || format == 0x0a || format == 0x20)   ? 4
                     : (format == 0x02 || format == 0x09 || format == 0x10) ? 2
                                                                            : 1;
  return width * std::max<size_t>(height, 1) * std::max<size_t>(depth, 1) * element * channels;
}

int make_array(void** out, uint64_t bytes) {
  Block block;
  block.device = t_current->device, block.bytes = page_round(bytes), block.context = t_current;
  if (!take(block.device, block.bytes)) return k_out_of_memory;
  *out = reinterpret_cast<void*>(new_address(1));
  process().arrays[*out] = block;
  return k_ok;
}

}  // namespace

STANDIN_EXPORT int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(machine().number("cuda", 13000));
  return k_ok;
}
STANDIN_EXPORT int cuInit(unsigned) {
  ENTER("cuInit");
  if (machine().number("own_lookup") && !model::finds_itself()) return 999;
  process().initialized = true;
  return card::visible_count() == 0 ? 100 : k_ok;
}
STANDIN_EXPORT int cuDeviceGetCount(int* count) {
  *count = card::visible_count();
  return process().initialized ? k_ok : k_not_initialized;
}
STANDIN_EXPORT int cuDeviceGet(int* out, int ordinal) {
  if (!is_device(ordinal)) return k_invalid_device;
  *out = ordinal;
  return k_ok;
}
STANDIN_EXPORT int cuDeviceGetName(char* out, int size, int ordinal) {
  if (!is_device(ordinal)) return k_invalid_device;
  std::snprintf(out, static_cast<size_t>(size), "%s",
                card::gpu(ordinal).text("name", "card").c_str());
  return k_ok;
}
static int give_uuid(unsigned char* out, const std::string& text) {
  if (text.size() != 40) return k_not_supported;  // a card without one
  std::string digits;
  for (char c : text.substr(4)) {
    if (c != '-') digits += c;
  }
  for (size_t i = 0; i < 16 && i * 2 + 1 < digits.size(); ++i)
    out[i] = static_cast<unsigned char>(std::stoul(digits.substr(i * 2, 2), nullptr, 16));
  return k_ok;
}
STANDIN_EXPORT int cuDeviceGetUuid(unsigned char* out, int ordinal) {
  if (!process().initialized) return k_not_initialized;
  if (!is_device(ordinal)) return k_invalid_device;
  return give_uuid(out, card::gpu(ordinal).text("card_uuid", card::gpu(ordinal).text("uuid")));
}
STANDIN_EXPORT int cuDeviceGetUuid_v2(unsigned char* out, int ordinal) {
  if (!process().initialized) return k_not_initialized;
  if (!is_device(ordinal)) return k_invalid_device;
  return give_uuid(out, card::gpu(ordinal).text("uuid"));
}
STANDIN_EXPORT int cuDeviceGetPCIBusId(char* out, int size, int ordinal) {
  if (!is_device(ordinal)) return k_invalid_device;
  std::string pci = card::gpu(ordinal).text("pci", "0000:01:00.0");
  for (char& c : pci) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::snprintf(out, static_cast<size_t>(size), "%s", pci.c_str());
  return k_ok;
}
STANDIN_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int ordinal) {
  if (!is_device(ordinal)) return k_invalid_device;
  *bytes = card::memory(card::physical(ordinal));
  return k_ok;
}
STANDIN_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int ordinal) {
  if (!is_device(ordinal)) return k_invalid_device;
  switch (attribute) {
    case 75:
      *value = 9;
      return k_ok;  // compute capability
    case 76:
      *value = 0;
      return k_ok;
    case 10:  // warp size
      *value = 32;
      return k_ok;
    case 134:  // the NUMA node beside the GPU
      *value = 0;
      return k_ok;
    case 141:  // memory of a node in the GPU's address space: possible from CUDA 12.2, asked for from 13.0
      if (machine().number("cuda", 13000) < 13000) return k_invalid;
      *value = 1;
      return k_ok;
    case 145:  // of the host: CUDA 13.0
      *value = machine().number("cuda", 13000) >= 13000;
      return k_ok;
    case 41:   // unified addressing
    case 83:   // managed memory
    case 102:  // virtual memory management
    case 115:  // memory pools
      *value = 1;
      return k_ok;
    default:
      *value = 0;
      return k_ok;
  }
}

STANDIN_EXPORT int cuDevicePrimaryCtxRetain(Context** out, int ordinal) {
  ENTER("cuDevicePrimaryCtxRetain");
  if (!is_device(ordinal)) return k_invalid_device;
  Device& owner = device(ordinal);
  if (!owner.active && !take(ordinal, card::gpu(ordinal).number("context"))) return k_out_of_memory;
  owner.active = true;
  ++owner.retained;
  *out = &owner.primary;
  return k_ok;
}
static int release_primary(int ordinal, bool reset) {
  LOCKED;
  if (!is_device(ordinal)) return k_invalid_device;
  Device& owner = device(ordinal);
  if (!owner.active) return k_invalid_context;
  if (!reset && --owner.retained > 0) return k_ok;
  if (reset || owner.retained == 0) end_context(owner.primary);
  owner.active = false;
  if (reset) owner.retained = 0;
  return k_ok;
}
STANDIN_EXPORT int cuDevicePrimaryCtxRelease_v2(int ordinal) {
  return release_primary(ordinal, false);
}
STANDIN_EXPORT int cuDevicePrimaryCtxReset_v2(int ordinal) {
  return release_primary(ordinal, true);
}
STANDIN_EXPORT int cuDevicePrimaryCtxGetState(int ordinal, unsigned* flags, int* active) {
  if (!is_device(ordinal)) return k_invalid_device;
  *flags = 0, *active = device(ordinal).active;
  return k_ok;
}
STANDIN_EXPORT int cuCtxCreate_v2(Context** out, unsigned, int ordinal) {
  ENTER("cuCtxCreate_v2");
  if (!is_device(ordinal)) return k_invalid_device;
  if (!take(ordinal, card::gpu(ordinal).number("context"))) return k_out_of_memory;
  *out = new Context{ordinal, false};
  process().contexts.insert(*out);
  t_current = *out;
  return k_ok;
}
STANDIN_EXPORT int cuCtxCreate_v4(Context** out, void*, unsigned flags, int ordinal) {
  return cuCtxCreate_v2(out, flags, ordinal);
}
// What a driver takes for kernels that it loads: no allocation tells of it.
STANDIN_EXPORT int cardKernels(uint64_t bytes) {
  return t_current && take(t_current->device, bytes) ? k_ok : k_out_of_memory;
}

STANDIN_EXPORT int cuCtxDestroy_v2(Context* context) {
  LOCKED;
  if (process().contexts.erase(context) == 0) return k_invalid_context;
  end_context(*context);
  delete context;
  return k_ok;
}
STANDIN_EXPORT int cuCtxSetCurrent(Context* context) {
  t_current = context;
  return k_ok;
}
STANDIN_EXPORT int cuCtxPushCurrent_v2(Context* context) {
  LOCKED;
  bool lives = process().contexts.count(context) > 0;
  for (auto& [ordinal, owner] : process().devices)
    lives = lives || (&owner.primary == context && owner.active);
  if (!lives) return k_invalid_context;
  t_pushed.push_back(t_current);
  t_current = context;
  return k_ok;
}
STANDIN_EXPORT int cuCtxPopCurrent_v2(Context** out) {
  *out = t_current;
  t_current = t_pushed.empty() ? nullptr : t_pushed.back();
  if (!t_pushed.empty()) t_pushed.pop_back();
  return k_ok;
}
STANDIN_EXPORT int cuCtxGetCurrent(Context** out) {
  *out = t_current;
  return k_ok;
}
STANDIN_EXPORT int cuCtxGetDevice(int* out) {
  if (!t_current) return k_invalid_context;
  *out = t_current->device;
  return k_ok;
}
STANDIN_EXPORT int cuCtxSynchronize() {
  LOCKED;
  if (!t_current) return k_invalid_context;
  process().synchronized.insert(t_current);
  synchronize(t_current->device);
  return k_ok;
}
STANDIN_EXPORT int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  IN_CONTEXT("cuMemGetInfo_v2");
  int index = card::physical(t_current->device);
  *total = card::memory(index);
  *free_bytes = *total - card::used_by_all(index);
  return k_ok;
}

// One that hangs holds up its thread alone.
STANDIN_EXPORT int cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  if (int code = enter("cuMemAlloc_v2")) return code;
  LOCKED;
  if (!t_current) return k_invalid_context;
  return allocate(out, bytes);
}
STANDIN_EXPORT int cuMemAllocPitch_v2(uint64_t* out, size_t* pitch, size_t width, size_t height,
                                      unsigned) {
  IN_CONTEXT("cuMemAllocPitch_v2");
  *pitch = (width + 511) / 512 * 512;
  return allocate(out, *pitch * height);
}
STANDIN_EXPORT int cuMemAllocManaged(uint64_t* out, size_t bytes, unsigned) {
  IN_CONTEXT("cuMemAllocManaged");
  Block block;
  block.device = t_current->device, block.bytes = bytes, block.managed = true;
  block.context = t_current;
  *out = new_address(bytes);
  process().blocks[*out] = block;
  return k_ok;
}
static int release(uint64_t address) {
  IN_CONTEXT("cuMemFree_v2");
  auto found = process().blocks.find(address);
  if (found == process().blocks.end()) return k_invalid;
  const Block& block = found->second;
  if (block.pool)
    block.pool->used -= block.bytes;
  else if (!block.managed)
    give_block(block.device, block.bytes, block.small);
  process().blocks.erase(found);
  return k_ok;
}
STANDIN_EXPORT int cuMemFree_v2(uint64_t address) { return release(address); }

// The same under names that no guard stands before, for comparison in one process (bench/guard_bench_child.cc).
STANDIN_EXPORT int card_allocate(uint64_t* out, size_t bytes) {
  IN_CONTEXT("cuMemAlloc_v2");
  return allocate(out, bytes);
}
STANDIN_EXPORT int card_free(uint64_t address) { return release(address); }

struct ArrayShape {
  size_t width, height;
  unsigned format, channels;
};
struct Array3DShape {
  size_t width, height, depth;
  unsigned format, channels, flags;
};
STANDIN_EXPORT int cuArrayCreate_v2(void** out, const ArrayShape* shape) {
  IN_CONTEXT("cuArrayCreate_v2");
  return make_array(out,
                    array_bytes(shape->width, shape->height, 1, shape->format, shape->channels));
}
STANDIN_EXPORT int cuArray3DCreate_v2(void** out, const Array3DShape* shape) {
  IN_CONTEXT("cuArray3DCreate_v2");
  return make_array(
      out, array_bytes(shape->width, shape->height, shape->depth, shape->format, shape->channels));
}
STANDIN_EXPORT int cuMipmappedArrayCreate(void** out, const Array3DShape* shape, unsigned) {
  IN_CONTEXT("cuMipmappedArrayCreate");
  return make_array(
      out, array_bytes(shape->width, shape->height, shape->depth, shape->format, shape->channels) *
               4 / 3);
}
static int destroy_array(void* array) {
  LOCKED;
  auto found = process().arrays.find(array);
  if (found == process().arrays.end()) return k_invalid_handle;
  give(found->second.device, found->second.bytes);
  process().arrays.erase(found);
  return k_ok;
}
STANDIN_EXPORT int cuArrayDestroy(void* array) { return destroy_array(array); }
STANDIN_EXPORT int cuMipmappedArrayDestroy(void* array) { return destroy_array(array); }
