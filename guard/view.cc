// SPDX-License-Identifier: Apache-2.0
// What a program is told of memory: the smaller of the card and the quota, in CUDA and in NVML from the same sum, never
// less than nothing. The structure of cudaGetDeviceProperties is filled by the runtime from cuDeviceTotalMem and is left
// alone (its layout changed with CUDA 13).
#include "hook.h"
#include "nvml.h"
#include "pools.h"

namespace guard {
namespace {

struct View {
  uint64_t free, total;
};

View limited(State& all, int row, View real_view) {
  uint64_t limit = row_limit(all.ledger, row);
  if (limit == CUFIT_DOMAIN_NO_LIMIT) return real_view;
  uint32_t live = 0;
  sweep(all.ledger, row, &live);  // the dead hold nothing
  uint64_t left = minus_saturating(limit, domain_used(all.ledger, row));
  uint64_t total = smaller(real_view.total, limit);
  return {smaller(smaller(real_view.free, left), total), total};
}

View of_device(State& all, Device ordinal, View real_view) {
  DeviceState* device = device_state(all, ordinal);
  if (!device) return real_view;
  refresh_pools(all, ordinal);
  refresh_graphs(all, ordinal);
  reconcile(all, ordinal, false);
  View view = limited(all, device->row, real_view);
  if (cufit_ring_device* shown = ring_device(all.ring, ordinal)) {
    store(shown->told_free_bytes, view.free);
    store(shown->told_total_bytes, view.total);
  }
  return view;
}

struct NvmlMemory {
  uint64_t total, free, used;
};
struct NvmlMemory2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};

}  // namespace
}  // namespace guard

using namespace guard;

GUARD_EXPORT Result cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  GUARD_BEGIN(cuMemGetInfo_v2, Result(size_t*, size_t*));
  Result result = real(free_bytes, total);
  Device device = current_device();
  if (!call.all() || result != k_ok || device < 0 || !free_bytes || !total) return result;
  View view = of_device(*call.all(), device, {*free_bytes, *total});
  *free_bytes = view.free, *total = view.total;
  return result;
}

GUARD_EXPORT Result cuMemGetInfo(uint32_t* free_bytes, uint32_t* total) {
  GUARD_BEGIN(cuMemGetInfo, Result(uint32_t*, uint32_t*));
  Result result = real(free_bytes, total);
  Device device = current_device();
  if (!call.all() || result != k_ok || device < 0 || !free_bytes || !total) return result;
  View view = of_device(*call.all(), device, {*free_bytes, *total});
  *free_bytes = static_cast<uint32_t>(view.free), *total = static_cast<uint32_t>(view.total);
  return result;
}

GUARD_EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, Device ordinal) {
  GUARD_BEGIN(cuDeviceTotalMem_v2, Result(size_t*, Device));
  Result result = real(bytes, ordinal);
  DeviceState* device = call.all() ? device_state(*call.all(), ordinal) : nullptr;
  if (result == k_ok && device && bytes)
    *bytes = smaller(*bytes, row_limit(call.all()->ledger, device->row));
  return result;
}

GUARD_EXPORT Result cuDeviceTotalMem(uint32_t* bytes, Device ordinal) {
  GUARD_BEGIN(cuDeviceTotalMem, Result(uint32_t*, Device));
  Result result = real(bytes, ordinal);
  DeviceState* device = call.all() ? device_state(*call.all(), ordinal) : nullptr;
  if (result == k_ok && device && bytes)
    *bytes = static_cast<uint32_t>(smaller(*bytes, row_limit(call.all()->ledger, device->row)));
  return result;
}

// used = total - free, so that the three agree as they do without a quota.
GUARD_EXPORT Result nvmlDeviceGetMemoryInfo(void* device, NvmlMemory* out) {
  GUARD_BEGIN(nvmlDeviceGetMemoryInfo, Result(void*, NvmlMemory*));
  Result result = real(device, out);
  if (!call.all() || result != k_ok || !out) return result;
  int row = nvml_row(*call.all(), device);
  if (row_limit(call.all()->ledger, row) == CUFIT_DOMAIN_NO_LIMIT) return result;
  View view = limited(*call.all(), row, {out->free, out->total});
  *out = {view.total, view.free, view.total - view.free};
  return result;
}

GUARD_EXPORT Result nvmlDeviceGetMemoryInfo_v2(void* device, NvmlMemory2* out) {
  GUARD_BEGIN(nvmlDeviceGetMemoryInfo_v2, Result(void*, NvmlMemory2*));
  Result result = real(device, out);
  if (!call.all() || result != k_ok || !out) return result;
  int row = nvml_row(*call.all(), device);
  if (row_limit(call.all()->ledger, row) == CUFIT_DOMAIN_NO_LIMIT) return result;
  View view = limited(*call.all(), row, {out->free, out->total});
  out->total = view.total, out->free = view.free, out->used = view.total - view.free;
  out->reserved = 0;  // the quota is of what programs take
  return result;
}
