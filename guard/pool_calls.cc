// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation. A request is charged in full while the driver works on it; afterwards the pool is charged with
// what it reserves, and the request no more. No stream is ever waited for.
#include "hook.h"
#include "pools.h"

namespace guard {
namespace {

constexpr uintptr_t k_last_special_stream = 2;  // 0 default, 1 legacy, 2 per-thread

struct Request {
  const Call& call;
  Pointer* out;
  size_t bytes;
  Handle stream;
  bool per_thread;
};

bool capturing(const Request& request) {
  const Driver& cuda = driver();
  auto* ask = request.per_thread ? cuda.is_capturing_ptsz : cuda.is_capturing;
  int status = 0;
  return ask && ask(request.stream, &status) == k_ok && status != 0;
}

// The pool that an allocation on this stream will come from: the current one of the current device, unless the stream
// is another context's.
Handle pool_of_stream(const Request& request, Device device) {
  const Driver& cuda = driver();
  Handle context = nullptr, pool = nullptr;
  if (reinterpret_cast<uintptr_t>(request.stream) > k_last_special_stream && cuda.stream_context &&
      cuda.stream_context(request.stream, &context) == k_ok && context != current_context())
    return nullptr;
  return cuda.device_pool && cuda.device_pool(&pool, device) == k_ok ? pool : nullptr;
}

// A pool that nobody was seen to make: asked of the driver by a pointer that came from it.
Handle learn_pool(State& all, Pointer address) {
  const Driver& cuda = driver();
  if (!cuda.pointer_attribute) return nullptr;
  Handle pool = nullptr;
  int ordinal = -1, type = 0, managed = 0;
  if (cuda.pointer_attribute(&pool, k_pointer_pool, address) != k_ok || !pool) return nullptr;
  if (cuda.pointer_attribute(&ordinal, k_pointer_ordinal, address) != k_ok) return nullptr;
  cuda.pointer_attribute(&type, k_pointer_memory_type, address);
  cuda.pointer_attribute(&managed, k_pointer_managed, address);
  bool counts = type != k_memory_host && !managed;
  know_pool(all, pool, ordinal, counts ? PoolKind::device : PoolKind::free_of_charge);
  return pool;
}

// Does the pool have that much that it reserves and does not use?
bool fits_inside(Handle pool, uint64_t bytes) {
  const Driver& cuda = driver();
  uint64_t reserved = 0, used = 0;
  return cuda.pool_attribute && cuda.pool_attribute(pool, k_pool_reserved, &reserved) == k_ok &&
         cuda.pool_attribute(pool, k_pool_used, &used) == k_ok &&
         bytes <= minus_saturating(reserved, used);
}

// The pool grew past the limit (it grows in steps, and its free blocks may not have fitted): back with it.
bool over_limit(State& all, Device ordinal) {
  DeviceState* device = device_state(all, ordinal);
  return device && domain_used(all.ledger, device->row) > row_limit(all.ledger, device->row);
}

Result take_back(const Request& request, Charge& charge, Handle pool, Undecided& undecided) {
  State& all = *request.call.all();
  const Driver& cuda = driver();
  auto* give = request.per_thread ? cuda.free_async_ptsz : cuda.free_async;
  if (!give || give(*request.out, request.stream) != k_ok) return k_ok;
  *request.out = 0;
  if (auto* trim = real_as<Result(Handle, size_t)>(hook_cuMemPoolTrimTo)) trim(pool, 0);
  refresh_pool(all, pool, &undecided);
  refuse(charge, request.bytes);
  return k_out_of_memory;
}

template <class Ask>
Result allocate_async(const Request& request, Handle pool, Ask ask) {
  Device device = current_device();
  if (!request.call.all() || !request.out || request.bytes == 0 || device < 0) return ask();
  State& all = *request.call.all();
  if (!pool) {
    pool = pool_of_stream(request, device);
    if (pool) know_pool(all, pool, device, PoolKind::device);
  }
  PoolState known{};
  bool is_known = pool && find_pool(all, pool, &known);
  if (is_known && known.kind != PoolKind::device) return ask();
  if (is_known) device = known.device;
  Charge charge(all, device, CUFIT_RING_KIND_POOL, request.bytes, request.call.caller());
  charge.allow_trim(true);
  uint64_t bytes = round_up(request.bytes, 512);
  bool in_capture = false;
  if (!charge.try_take(bytes)) {
    in_capture = capturing(request);
    charge.allow_trim(!in_capture);
    if ((in_capture || !is_known || !fits_inside(pool, request.bytes)) && !charge.take(bytes))
      return k_out_of_memory;
  }
  Result result = ask();
  if (result != k_ok) {
    charge.driver_refused(result);
    return result;
  }
  if (!is_known) pool = learn_pool(all, *request.out);
  Undecided undecided;
  bool grew = pool && refresh_pool(all, pool, &undecided) > 0;
  charge.give_back();
  if (grew && over_limit(all, undecided.device)) {
    if (!in_capture) in_capture = capturing(request);
    if (!in_capture) result = take_back(request, charge, pool, undecided);
  }
  grant(all, undecided.device, undecided.bytes);
  if (result == k_ok) charge.note(*request.out);
  return result;
}

}  // namespace
}  // namespace guard

using namespace guard;

#define GUARD_ALLOC_ASYNC(name, per_thread)                                \
  GUARD_EXPORT Result name(Pointer* out, size_t bytes, Handle stream) {    \
    GUARD_BEGIN(name, Result(Pointer*, size_t, Handle));                   \
    return allocate_async({call, out, bytes, stream, per_thread}, nullptr, \
                          [=] { return real(out, bytes, stream); });       \
  }
GUARD_ALLOC_ASYNC(cuMemAllocAsync, false)
GUARD_ALLOC_ASYNC(cuMemAllocAsync_ptsz, true)

#define GUARD_ALLOC_FROM_POOL(name, per_thread)                                      \
  GUARD_EXPORT Result name(Pointer* out, size_t bytes, Handle pool, Handle stream) { \
    GUARD_BEGIN(name, Result(Pointer*, size_t, Handle, Handle));                     \
    if (!pool) return real(out, bytes, pool, stream);                                \
    return allocate_async({call, out, bytes, stream, per_thread}, pool,              \
                          [=] { return real(out, bytes, pool, stream); });           \
  }
GUARD_ALLOC_FROM_POOL(cuMemAllocFromPoolAsync, false)
GUARD_ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz, true)

GUARD_EXPORT Result cuMemPoolCreate(Handle* pool, const PoolProperties* wanted) {
  GUARD_BEGIN(cuMemPoolCreate, Result(Handle*, const PoolProperties*));
  Result result = real(pool, wanted);
  if (!call.all() || result != k_ok || !pool || !wanted) return result;
  bool counts = wanted->location.type == k_location_device && wanted->type == k_type_pinned;
  know_pool(*call.all(), *pool, counts ? wanted->location.id : -1,
            counts ? PoolKind::device : PoolKind::free_of_charge);
  return result;
}

// Who exported pays.
GUARD_EXPORT Result cuMemPoolImportFromShareableHandle(Handle* pool, void* shared, int type,
                                                       unsigned long long flags) {
  GUARD_BEGIN(cuMemPoolImportFromShareableHandle, Result(Handle*, void*, int, unsigned long long));
  Result result = real(pool, shared, type, flags);
  if (call.all() && result == k_ok && pool)
    know_pool(*call.all(), *pool, -1, PoolKind::free_of_charge);
  return result;
}

// Its memory goes when its last block does, and by then nobody can ask: blocks that live stay charged until the limit
// is reached (drop_gone_pools).
GUARD_EXPORT Result cuMemPoolDestroy(Handle pool) {
  GUARD_BEGIN(cuMemPoolDestroy, Result(Handle));
  PoolState known{};
  if (!call.all() || !find_pool(*call.all(), pool, &known)) return real(pool);
  uint64_t used = 0;
  const Driver& cuda = driver();
  if (known.kind == PoolKind::device && cuda.pool_attribute)
    cuda.pool_attribute(pool, k_pool_used, &used);
  Result result = real(pool);
  if (result == k_ok) forget_pool(*call.all(), pool, used);
  return result;
}

GUARD_EXPORT Result cuMemPoolTrimTo(Handle pool, size_t keep) {
  GUARD_BEGIN(cuMemPoolTrimTo, Result(Handle, size_t));
  Result result = real(pool, keep);
  if (call.all() && result == k_ok) refresh_pool(*call.all(), pool, nullptr);
  return result;
}
