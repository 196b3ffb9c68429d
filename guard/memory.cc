// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc and its kin. The calls without _v2 are those of CUDA 3.1 with addresses of 32 bits.
#include "hook.h"
#include "spill.h"

namespace guard {

__thread int t_depth __attribute__((tls_model("initial-exec")));

namespace {

// Charges, asks the driver, keeps. `bytes_now` is the size as known after the call (a pitch is the driver's).
// `spill_to`: where host memory may be the answer at a second refusal.
template <class Address, class Ask>
Result allocate(const Call& call, Address* out, uint64_t bytes, Ask ask,
                Pointer* spill_to = nullptr) {
  Device device = current_device();
  // Without a context, a place or a size it fails, and the driver says how.
  if (!call.all() || device < 0 || !out || bytes == 0) return ask();
  State& all = *call.all();
  reconcile(all, device, false);
  Charge charge(all, device, CUFIT_RING_KIND_ALLOC, bytes, call.caller());
  charge.allow_spill(spill_to);
  if (!charge.take_block(bytes)) return k_out_of_memory;
  if (charge.spilled()) return k_ok;
  Result result = ask();
  if (result == k_out_of_memory && charge.spill_instead()) return k_ok;
  if (result != k_ok) {
    charge.driver_refused(result);
    return result;
  }
  if (spill_to) forget_refusal(device, bytes);
  all.allocations.insert(charge.keep(*out, current_context()));
  return result;
}

template <class Ask>
Result free_block(const Call& call, uint64_t address, Ask ask) {
  Entry entry;
  if (call.all() && load(call.all()->spilled) != 0 &&
      free_spilled(*call.all(), address, call.caller()))
    return k_ok;
  // Out of the table first: once the driver has it back, another thread may get the same address.
  if (!call.all() || !call.all()->allocations.take(address, &entry)) return ask();
  Result result = ask();
  if (result == k_ok)
    release(*call.all(), entry, call.caller());
  else
    call.all()->allocations.insert(entry);
  return result;
}

// What a pitched allocation takes: rows are a multiple of 512 bytes on every GPU so far; the driver packs or
// pages it like any other.
uint64_t pitched(uint64_t width, uint64_t height) {
  uint64_t pitch = round_up(width, 512);
  return height && pitch > UINT64_MAX / height ? UINT64_MAX : pitch * height;
}

}  // namespace
}  // namespace guard

using namespace guard;

GUARD_EXPORT Result cuMemAlloc_v2(Pointer* out, size_t bytes) {
  GUARD_BEGIN(cuMemAlloc_v2, Result(Pointer*, size_t));
  return allocate(
      call, out, bytes, [=] { return real(out, bytes); }, out);
}

GUARD_EXPORT Result cuMemAlloc(uint32_t* out, uint32_t bytes) {
  GUARD_BEGIN(cuMemAlloc, Result(uint32_t*, uint32_t));
  return allocate(call, out, bytes, [=] { return real(out, bytes); });
}

GUARD_EXPORT Result cuMemAllocPitch_v2(Pointer* out, size_t* pitch, size_t width, size_t height,
                                       unsigned element) {
  GUARD_BEGIN(cuMemAllocPitch_v2, Result(Pointer*, size_t*, size_t, size_t, unsigned));
  return allocate(call, out, pitched(width, height),
                  [=] { return real(out, pitch, width, height, element); });
}

GUARD_EXPORT Result cuMemAllocPitch(uint32_t* out, uint32_t* pitch, uint32_t width, uint32_t height,
                                    unsigned element) {
  GUARD_BEGIN(cuMemAllocPitch, Result(uint32_t*, uint32_t*, uint32_t, uint32_t, unsigned));
  return allocate(call, out, pitched(width, height),
                  [=] { return real(out, pitch, width, height, element); });
}

// Pages of managed memory move: how many are on the GPU nobody can say beforehand. By default they are only recorded,
// and NVML's figure for this process holds those that are there.
GUARD_EXPORT Result cuMemAllocManaged(Pointer* out, size_t bytes, unsigned flags) {
  GUARD_BEGIN(cuMemAllocManaged, Result(Pointer*, size_t, unsigned));
  Device device = current_device();
  if (!call.all() || device < 0 || !out || bytes == 0) return real(out, bytes, flags);
  State& all = *call.all();
  bool counts = all.ledger.file && domain_header(all.ledger).flags & CUFIT_DOMAIN_CHARGE_MANAGED;
  Charge charge(all, device, CUFIT_RING_KIND_MANAGED, bytes, call.caller());
  if (counts && !charge.take(round_up(bytes, k_page))) return k_out_of_memory;
  Result result = real(out, bytes, flags);
  if (result != k_ok) {
    charge.driver_refused(result);
    return result;
  }
  all.allocations.insert(charge.keep(*out, current_context()));
  return result;
}

GUARD_EXPORT Result cuMemFree_v2(Pointer address) {
  GUARD_BEGIN(cuMemFree_v2, Result(Pointer));
  return free_block(call, address, [=] { return real(address); });
}

GUARD_EXPORT Result cuMemFree(uint32_t address) {
  GUARD_BEGIN(cuMemFree, Result(uint32_t));
  return free_block(call, address, [=] { return real(address); });
}

// Blocks of pools are not in the table (pool_calls.cc says what pools hold); one of cuMemAlloc may be given back so, too.
// Inside a capture the driver takes memory of graphs alone and refuses the rest.
#define GUARD_FREE_ASYNC(name)                                               \
  GUARD_EXPORT Result name(Pointer address, Handle stream) {                 \
    GUARD_BEGIN(name, Result(Pointer, Handle));                              \
    return free_block(call, address, [=] { return real(address, stream); }); \
  }
GUARD_FREE_ASYNC(cuMemFreeAsync)
GUARD_FREE_ASYNC(cuMemFreeAsync_ptsz)
