// SPDX-License-Identifier: Apache-2.0
// A context takes hundreds of megabytes. Before it is made the launcher's constant is charged; then NVML says what this
// process really holds, where it can (nvml.h). What lies in a context dies with it.
#include "hook.h"
#include "spill.h"
#include "nvml.h"
#include "pools.h"

namespace guard {
namespace {

uint64_t constant_of(State& all, Device ordinal) {
  DeviceState* device = device_state(all, ordinal);
  cufit_domain_device* row = device ? domain_row(all.ledger, device->row) : nullptr;
  return row ? load(row->context_bytes) : 0;
}

// By NVML, else one constant for each context.
void settle_overhead(State& all, Device ordinal) {
  DeviceState* device = device_state(all, ordinal);
  if (!device) return;
  if (load(device->contexts) == 0) {
    set_overhead(all, ordinal, 0);
    return;
  }
  uint64_t own = 0;
  uint64_t listed = 0;
  bool nvml = listed_bytes(*device, &listed) && all.ledger.file &&
              domain_header(all.ledger).flags & CUFIT_DOMAIN_NVML_OWN_PROCESS;
  if (nvml && nvml_own_bytes(all, ordinal, &own) && own)
    set_overhead(all, ordinal, minus_saturating(own, listed));
  else
    set_overhead(all, ordinal, constant_of(all, ordinal) * load(device->contexts));
}

// A context is made by ask(): charged, or refused.
template <class Ask>
Result make(const Call& call, Device ordinal, Ask ask) {
  State& all = *call.all();
  DeviceState& device = *device_state(all, ordinal);
  Charge charge(all, ordinal, CUFIT_RING_KIND_CONTEXT, constant_of(all, ordinal), call.caller());
  if (!charge.take(constant_of(all, ordinal))) return k_out_of_memory;
  Result result = ask();
  if (result != k_ok) {
    charge.driver_refused(result);
    return result;
  }
  charge.give_back();
  fetch_add(device.contexts, 1u);
  settle_overhead(all, ordinal);
  charge.note(0);
  return result;
}

// All that was allocated in it is the driver's again.
void bury(State& all, Device ordinal, Handle context, const void* caller) {
  Entry entry;
  while (all.allocations.take_of_context(context, &entry)) release(all, entry, caller);
  while (all.arrays.take_of_context(context, &entry)) release(all, entry, caller);
  bury_spilled(all, context, caller);
  DeviceState* device = device_state(all, ordinal);
  if (!device) return;
  if (load(device->contexts)) fetch_sub(device->contexts, 1u);
  refresh_pools(all, ordinal);
  settle_overhead(all, ordinal);
  Event event{CUFIT_RING_KIND_CONTEXT, CUFIT_RING_RELEASED};
  event.device = ordinal, event.used = charged(all, ordinal), event.caller = caller;
  record(all.ring, event);
}

template <class Ask>
Result create_context(const Call& call, Handle* out, Device ordinal, Ask ask) {
  if (!call.all() || !device_state(*call.all(), ordinal)) return ask();
  Result result = make(call, ordinal, ask);
  if (result != k_ok || !out) return result;
  State& all = *call.all();
  Held held(all.contexts_lock);
  for (ContextState& place : all.contexts) {
    if (place.context) continue;
    place = {*out, ordinal};
    break;
  }
  return result;
}

template <class Ask>
Result destroy_context(const Call& call, Handle context, Ask ask) {
  Result result = ask();
  if (!call.all() || result != k_ok) return result;
  State& all = *call.all();
  Device ordinal = -1;
  {
    Held held(all.contexts_lock);
    for (ContextState& place : all.contexts) {
      if (!context || place.context != context) continue;
      ordinal = place.device;
      place = ContextState{};
    }
  }
  if (ordinal >= 0) bury(all, ordinal, context, call.caller());
  return result;
}

// After a release or a reset: is the primary context still there?
Result after_primary(const Call& call, Device ordinal, Result result) {
  DeviceState* device = call.all() ? device_state(*call.all(), ordinal) : nullptr;
  const Driver& cuda = driver();
  unsigned flags = 0;
  int active = 1;
  if (result != k_ok || !device || !cuda.primary_state ||
      cuda.primary_state(ordinal, &flags, &active) != k_ok || active)
    return result;
  if (compare_set(device->primary, 2u, 0u))
    bury(*call.all(), ordinal, device->primary_context, call.caller());
  return result;
}

}  // namespace
}  // namespace guard

using namespace guard;

GUARD_EXPORT Result cuDevicePrimaryCtxRetain(Handle* out, Device ordinal) {
  GUARD_BEGIN(cuDevicePrimaryCtxRetain, Result(Handle*, Device));
  DeviceState* device = call.all() ? device_state(*call.all(), ordinal) : nullptr;
  // It exists already, or another thread is at it.
  if (!device || !out || !compare_set(device->primary, 0u, 1u)) return real(out, ordinal);
  Result result = make(call, ordinal, [=] { return real(out, ordinal); });
  if (result == k_ok) device->primary_context = *out;
  store(device->primary, result == k_ok ? 2u : 0u);
  return result;
}

#define GUARD_AFTER_PRIMARY(name)                       \
  GUARD_EXPORT Result name(Device ordinal) {            \
    GUARD_BEGIN(name, Result(Device));                  \
    return after_primary(call, ordinal, real(ordinal)); \
  }
GUARD_AFTER_PRIMARY(cuDevicePrimaryCtxRelease)
GUARD_AFTER_PRIMARY(cuDevicePrimaryCtxRelease_v2)
GUARD_AFTER_PRIMARY(cuDevicePrimaryCtxReset)
GUARD_AFTER_PRIMARY(cuDevicePrimaryCtxReset_v2)

#define GUARD_CREATE_CONTEXT(name)                                                        \
  GUARD_EXPORT Result name(Handle* out, unsigned flags, Device ordinal) {                 \
    GUARD_BEGIN(name, Result(Handle*, unsigned, Device));                                 \
    return create_context(call, out, ordinal, [=] { return real(out, flags, ordinal); }); \
  }
GUARD_CREATE_CONTEXT(cuCtxCreate)
GUARD_CREATE_CONTEXT(cuCtxCreate_v2)

GUARD_EXPORT Result cuCtxCreate_v3(Handle* out, void* affinity, int count, unsigned flags,
                                   Device ordinal) {
  GUARD_BEGIN(cuCtxCreate_v3, Result(Handle*, void*, int, unsigned, Device));
  return create_context(call, out, ordinal,
                        [=] { return real(out, affinity, count, flags, ordinal); });
}

GUARD_EXPORT Result cuCtxCreate_v4(Handle* out, void* parameters, unsigned flags, Device ordinal) {
  GUARD_BEGIN(cuCtxCreate_v4, Result(Handle*, void*, unsigned, Device));
  return create_context(call, out, ordinal, [=] { return real(out, parameters, flags, ordinal); });
}

#define GUARD_DESTROY_CONTEXT(name)                                       \
  GUARD_EXPORT Result name(Handle context) {                              \
    GUARD_BEGIN(name, Result(Handle));                                    \
    return destroy_context(call, context, [=] { return real(context); }); \
  }
GUARD_DESTROY_CONTEXT(cuCtxDestroy)
GUARD_DESTROY_CONTEXT(cuCtxDestroy_v2)
