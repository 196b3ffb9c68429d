// SPDX-License-Identifier: Apache-2.0
#include "spill.h"

#include <string.h>

#include "charge.h"
#include "objects.h"
#include "resolver.h"
#include "settings.h"

namespace guard {
namespace {

// By their layout in cuda.h.
constexpr int k_location_host = 2, k_location_host_numa = 3;
constexpr int k_attribute_numa_node = 134, k_attribute_host_numa = 141, k_attribute_host = 145;
constexpr int k_access_read_write = 3;
// Below this a block is too small to be worth a mapping of its own: torch's large segments begin at 20 MiB.
constexpr uint64_t k_least_spill = 20 * k_mib;
constexpr uint64_t k_same_request_ns = 10'000'000'000;

struct Access {
  Location location;
  int flags;
};

struct Calls {
  Result (*reserve)(Pointer*, size_t, size_t, Pointer, unsigned long long);
  Result (*free_address)(Pointer, size_t);
  Result (*set_access)(Pointer, size_t, const Access*, size_t);
  Result (*attribute)(int*, int, Device);
  Result (*synchronize)();
  Result (*push)(Handle);
  Result (*pop)(Handle*);
};

// Filled once a driver, as driver() is.
bool find_calls(Calls* calls) {
  static Calls known;
  static uint32_t ready;
  if (load(ready)) {
    *calls = known;
    return true;
  }
  const struct {
    void* place;
    char name[24];
  } rows[] = {
      {&calls->reserve, "cuMemAddressReserve"},  {&calls->free_address, "cuMemAddressFree"},
      {&calls->set_access, "cuMemSetAccess"},    {&calls->attribute, "cuDeviceGetAttribute"},
      {&calls->synchronize, "cuCtxSynchronize"}, {&calls->push, "cuCtxPushCurrent_v2"},
      {&calls->pop, "cuCtxPopCurrent_v2"}};
  for (const auto& row : rows) {
    void* found = driver_function(row.name);
    if (!found) return false;
    memcpy(row.place, &found, sizeof found);
  }
  known = *calls;
  store(ready, 1u);
  return true;
}

// Where the pages may lie, best first; the number of places. Older drivers do not know the attributes of what they can do
// (141 is in cuda.h from 13.0 on): there the attempt decides.
int places_of(const Calls& calls, Device device, Location (&out)[2]) {
  int count = 0, yes = 1, node = -1;
  if (calls.attribute(&node, k_attribute_numa_node, device) != k_ok) node = -1;
  if (calls.attribute(&yes, k_attribute_host_numa, device) != k_ok) yes = 1;
  // The node beside the GPU; a seccomp filter may forbid the question, and then HOST does.
  if (yes) out[count++] = {k_location_host_numa, node < 0 ? 0 : node};
  yes = 0;
  if (calls.attribute(&yes, k_attribute_host, device) == k_ok && yes)
    out[count++] = {k_location_host, 0};
  return count;
}

void undo_map(const Calls& calls, Pointer at, uint64_t bytes) {
  if (auto* unmap = real_as<Result(Pointer, size_t)>(hook_cuMemUnmap)) unmap(at, bytes);
  calls.free_address(at, bytes);
}

// The whole of it, or nothing.
bool map_at(const Calls& calls, Device device, Location where, uint64_t bytes, Pointer* out) {
  auto* create =
      real_as<Result(uint64_t*, size_t, const AllocationProperties*, unsigned long long)>(
          hook_cuMemCreate);
  auto* map = real_as<Result(Pointer, size_t, size_t, uint64_t, unsigned long long)>(hook_cuMemMap);
  auto* release_handle = real_as<Result(uint64_t)>(hook_cuMemRelease);
  if (!create || !map || !release_handle) return false;
  AllocationProperties wanted{};
  wanted.type = k_type_pinned;
  wanted.location = where;
  uint64_t handle = 0;
  Pointer at = 0;
  if (create(&handle, bytes, &wanted, 0) != k_ok) return false;
  bool done = calls.reserve(&at, bytes, k_page, 0, 0) == k_ok;
  if (done && map(at, bytes, 0, handle, 0) != k_ok) {
    calls.free_address(at, bytes);
    done = false;
  }
  release_handle(handle);  // the mapping keeps the pages
  if (!done) return false;
  const Access access{{k_location_device, device}, k_access_read_write};
  if (calls.set_access(at, bytes, &access, 1) != k_ok) {
    undo_map(calls, at, bytes);
    return false;
  }
  *out = at;
  return true;
}

struct Refused {
  Device device;
  uint64_t bytes, ns;
};
__thread Refused t_refused;

bool from_nccl(const void* caller) {
  Object object;
  return object_of(caller, &object) && strstr(base_name(object.path), "nccl");
}

// Taken before the pages are: two threads must not both have the last of it.
bool take_share(State& all, uint64_t bytes) {
  const uint64_t most = settings().spill_bytes;
  if (fetch_add(all.spilled, bytes) + bytes <= most) return true;
  fetch_sub(all.spilled, bytes);
  return false;
}

void count_spilled(State& all, Device device, uint64_t bytes) {
  DeviceState* found = device_state(all, device);
  cufit_domain_device* row = found ? domain_row(all.ledger, found->row) : nullptr;
  if (row) fetch_add(row->spilled_bytes, bytes);
}

void note_released(State& all, const Entry& entry, const void* caller) {
  Event event{entry.kind, CUFIT_RING_RELEASED};
  event.device = entry.device, event.address = entry.key, event.bytes = entry.requested;
  event.caller = caller, event.used = charged(all, entry.device);
  record(all.ring, event);
}

}  // namespace

bool can_spill(Device device) {
  Calls calls;
  Location places[2];
  if (!find_calls(&calls)) return false;
  const int count = places_of(calls, device, places);
  for (int i = 0; i < count; ++i) {
    Pointer at = 0;
    if (!map_at(calls, device, places[i], k_page, &at)) continue;
    undo_map(calls, at, k_page);
    return true;
  }
  return false;
}

bool map_host(State& all, Device device, uint64_t bytes, const void* caller, bool emergency,
              Pointer* out) {
  Calls calls;
  Location places[2];
  const uint64_t whole = round_up(bytes, k_page);
  if (bytes == 0 || whole == UINT64_MAX || whole > host_room() || !find_calls(&calls)) return false;
  const int count = places_of(calls, device, places);
  bool done = false;
  for (int i = 0; i < count && !done; ++i) done = map_at(calls, device, places[i], whole, out);
  if (!done) return false;
  Entry entry{};
  entry.key = *out, entry.charged = whole, entry.requested = bytes;
  entry.device = static_cast<uint8_t>(device), entry.kind = CUFIT_RING_KIND_ALLOC;
  entry.context = current_context(), entry.small = emergency ? 1 : 0;
  if (!all.spills.insert(entry)) {
    undo_map(calls, *out, whole);
    return false;
  }
  count_spilled(all, device, whole);
  Event event{CUFIT_RING_KIND_ALLOC, CUFIT_RING_SPILLED};
  event.device = device, event.address = *out, event.bytes = bytes, event.caller = caller;
  event.used = charged(all, device);
  record(all.ring, event);
  return true;
}

bool free_spilled(State& all, Pointer at, const void* caller) {
  uint64_t bytes = 0;
  if (!unmap_host(all, at, caller, &bytes)) return false;
  fetch_sub(all.spilled, bytes);
  return true;
}

bool unmap_host(State& all, Pointer at, const void* caller, uint64_t* bytes) {
  Entry entry{};
  Calls calls;
  if (!find_calls(&calls) || !all.spills.take(at, &entry)) return false;
  // Its own context, whichever is current. One that is gone has nothing running; one with an error may.
  Handle before = nullptr;
  Result idle = k_ok;
  if (entry.context && calls.push(entry.context) == k_ok) {
    idle = calls.synchronize();
    calls.pop(&before);
  }
  if (idle == k_ok) undo_map(calls, at, entry.charged);
  *bytes = entry.charged;
  note_released(all, entry, caller);
  return true;
}

void bury_spilled(State& all, Handle context, const void* caller) {
  Entry entry{};
  Calls calls;
  if (!find_calls(&calls)) return;
  while (all.spills.take_of_context(context, &entry)) {
    undo_map(calls, entry.key, entry.charged);
    if (entry.small) fetch_sub(all.spilled, entry.charged);
    note_released(all, entry, caller);
  }
}

void forget_refusal(Device device, uint64_t bytes) {
  if (t_refused.bytes == bytes && t_refused.device == device) t_refused = Refused{};
}

void remember_refusal(Device device, uint64_t bytes) {
  t_refused = {device, bytes, monotonic_ns()};
}

bool spill_refused(State& all, Device device, uint64_t bytes, const void* caller, Pointer* out) {
  if (settings().spill_bytes == 0 || bytes < k_least_spill || t_refused.bytes != bytes ||
      t_refused.device != device || monotonic_ns() - t_refused.ns > k_same_request_ns)
    return false;
  if (from_nccl(caller) || load(all.capturing) > 0) return false;
  const uint64_t whole = round_up(bytes, k_page);
  if (!take_share(all, whole)) return false;
  if (map_host(all, device, bytes, caller, true, out)) {
    fetch_add(all.spilled_total, whole);
    t_refused = Refused{};  // the next of this size is a first one again
    return true;
  }
  fetch_sub(all.spilled, whole);
  return false;
}

}  // namespace guard

using namespace guard;

// For torch.cuda.memory.CUDAPluggableAllocator, by name. Null: torch says out of memory.
GUARD_EXPORT void* cufit_spill_alloc(size_t bytes, int device, void*) {
  State* all = state();
  Pointer at = 0;
  if (!all || !map_host(*all, device, bytes, __builtin_return_address(0), false, &at))
    return nullptr;
  return reinterpret_cast<void*>(at);
}

GUARD_EXPORT void cufit_spill_free(void* at, size_t, int, void*) {
  uint64_t bytes = 0;
  if (State* all = state())
    unmap_host(*all, reinterpret_cast<Pointer>(at), __builtin_return_address(0), &bytes);
}

// 0: this driver cannot map host memory for that device.
GUARD_EXPORT int cufit_spill_possible(int device) { return can_spill(device) ? 1 : 0; }
// Of --spill SIZE, in this process.
GUARD_EXPORT uint64_t cufit_spill_total() {
  State* all = state_if_made();
  return all ? load(all->spilled_total) : 0;
}
