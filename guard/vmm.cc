// SPDX-License-Identifier: Apache-2.0
// cuMemCreate: memory that lives as long as a reference to its handle or a mapping of it. Charged to the device of its
// location, whatever context is current; host locations and imports are not charged.
#include "hook.h"

namespace guard {

// One creation. Mappings and handles point at it by its place in the array, for a handle's number may come again
// while an older creation still lives by its mappings.
struct Creation {
  Entry entry;       // key: the handle
  uint32_t handles;  // references by Create, Retain, Import
  uint32_t mappings;
  uint32_t alive;
};

struct Mapping {
  uint64_t address;  // 0: free
  uint64_t bytes;
  uint32_t creation;
};
constexpr uint32_t k_foreign = UINT32_MAX;  // a mapping of memory that is not charged

// Arrays in pages of their own; large programs have tens of thousands of handles, so both are found by hash.
struct VmmState {
  Creation* creations;
  size_t creation_room, creation_count;
  uint32_t* free_list;
  size_t free_count;
  Table handles;   // handle -> Entry.charged = place in creations
  Table mappings;  // address -> Entry.charged = place or k_foreign, Entry.requested = bytes
};

namespace {

VmmState* vmm_state(State& all) {
  if (!all.vmm) all.vmm = static_cast<VmmState*>(map_pages(sizeof(VmmState)));
  return all.vmm;
}

bool make_room(VmmState& vmm) {
  if (vmm.creation_count < vmm.creation_room || vmm.free_count) return true;
  size_t room = vmm.creation_room ? vmm.creation_room * 2 : 1024;
  auto* creations = static_cast<Creation*>(map_pages(room * sizeof(Creation)));
  auto* list = static_cast<uint32_t*>(map_pages(room * sizeof(uint32_t)));
  if (!creations || !list) {
    unmap_pages(creations, room * sizeof(Creation));
    unmap_pages(list, room * sizeof(uint32_t));
    return false;
  }
  for (size_t i = 0; i < vmm.creation_room; ++i) creations[i] = vmm.creations[i];
  unmap_pages(vmm.creations, vmm.creation_room * sizeof(Creation));
  unmap_pages(vmm.free_list, vmm.creation_room * sizeof(uint32_t));
  vmm.creations = creations, vmm.free_list = list, vmm.creation_room = room;
  return true;
}

bool place_of(VmmState& vmm, uint64_t handle, uint32_t* place) {
  Entry entry;
  if (!vmm.handles.take(handle, &entry)) return false;
  vmm.handles.insert(entry);
  *place = static_cast<uint32_t>(entry.charged);
  return true;
}

void name_handle(VmmState& vmm, uint64_t handle, uint32_t place) {
  Entry entry{};
  entry.key = handle, entry.charged = place;
  vmm.handles.insert(entry);
}

// True if nothing holds it any more; then `*out` is what to release.
bool gone(VmmState& vmm, uint32_t place, Entry* out) {
  Creation& creation = vmm.creations[place];
  if (!creation.alive || creation.handles || creation.mappings) return false;
  *out = creation.entry;
  creation = Creation{};
  vmm.free_list[vmm.free_count++] = place;
  return true;
}

void add_creation(State& all, const Entry& entry) {
  Held held(all.vmm_lock);
  VmmState* vmm = vmm_state(all);
  if (!vmm || !make_room(*vmm)) return;
  Entry old;
  // The number of a handle whose memory lives on by mappings alone.
  vmm->handles.take(entry.key, &old);
  size_t place = vmm->free_count ? vmm->free_list[--vmm->free_count] : vmm->creation_count++;
  vmm->creations[place] = Creation{entry, 1, 0, 1};
  name_handle(*vmm, entry.key, static_cast<uint32_t>(place));
}

bool add_handle(State& all, uint64_t handle, int change) {
  Held held(all.vmm_lock);
  VmmState* vmm = vmm_state(all);
  uint32_t place = 0;
  if (!vmm || !place_of(*vmm, handle, &place)) return false;
  vmm->creations[place].handles += static_cast<uint32_t>(change);
  return true;
}

}  // namespace
}  // namespace guard

using namespace guard;

GUARD_EXPORT Result cuMemCreate(uint64_t* handle, size_t bytes, const AllocationProperties* wanted,
                                unsigned long long flags) {
  GUARD_BEGIN(cuMemCreate,
              Result(uint64_t*, size_t, const AllocationProperties*, unsigned long long));
  if (!call.all() || !handle || !wanted || wanted->location.type != k_location_device ||
      !device_state(*call.all(), wanted->location.id))
    return real(handle, bytes, wanted, flags);
  State& all = *call.all();
  Device device = wanted->location.id;
  reconcile(all, device, false);
  Charge charge(all, device, CUFIT_RING_KIND_VMM, bytes, call.caller());
  if (!charge.take(round_up(bytes, k_page))) return k_out_of_memory;
  Result result = real(handle, bytes, wanted, flags);
  if (result != k_ok)
    charge.driver_refused(result);
  else
    add_creation(all, charge.keep(*handle, nullptr));
  return result;
}

GUARD_EXPORT Result cuMemRelease(uint64_t handle) {
  GUARD_BEGIN(cuMemRelease, Result(uint64_t));
  if (!call.all()) return real(handle);
  State& all = *call.all();
  Entry last{};
  uint32_t place = k_foreign;
  bool done = false;
  {
    // Before the driver is asked, for the number may be another's as soon as it has answered.
    Held held(all.vmm_lock);
    VmmState* vmm = vmm_state(all);
    if (vmm && place_of(*vmm, handle, &place)) {
      Entry name;
      if (--vmm->creations[place].handles == 0) vmm->handles.take(handle, &name);
    }
  }
  Result result = real(handle);
  if (place == k_foreign) return result;
  {
    Held held(all.vmm_lock);
    if (result != k_ok) {
      if (all.vmm->creations[place].handles++ == 0) name_handle(*all.vmm, handle, place);
    } else {
      done = gone(*all.vmm, place, &last);
    }
  }
  if (done) release(all, last, call.caller());
  return result;
}

GUARD_EXPORT Result cuMemRetainAllocationHandle(uint64_t* handle, void* address) {
  GUARD_BEGIN(cuMemRetainAllocationHandle, Result(uint64_t*, void*));
  Result result = real(handle, address);
  if (!call.all() || result != k_ok || !handle) return result;
  State& all = *call.all();
  if (add_handle(all, *handle, 1)) return result;
  // A number that no Create gave: another name of what is mapped there.
  Held held(all.vmm_lock);
  Entry mapping;
  VmmState* vmm = vmm_state(all);
  if (!vmm || !vmm->mappings.take(reinterpret_cast<uint64_t>(address), &mapping)) return result;
  vmm->mappings.insert(mapping);
  if (mapping.charged == k_foreign) return result;
  ++vmm->creations[mapping.charged].handles;
  name_handle(*vmm, *handle, static_cast<uint32_t>(mapping.charged));
  return result;
}

// Who exported pays. Where a process imports its own export, it may get the number that it has: one reference more.
GUARD_EXPORT Result cuMemImportFromShareableHandle(uint64_t* handle, void* shared, int type) {
  GUARD_BEGIN(cuMemImportFromShareableHandle, Result(uint64_t*, void*, int));
  Result result = real(handle, shared, type);
  if (call.all() && result == k_ok && handle) add_handle(*call.all(), *handle, 1);
  return result;
}

GUARD_EXPORT Result cuMemMap(Pointer address, size_t bytes, size_t offset, uint64_t handle,
                             unsigned long long flags) {
  GUARD_BEGIN(cuMemMap, Result(Pointer, size_t, size_t, uint64_t, unsigned long long));
  Result result = real(address, bytes, offset, handle, flags);
  if (!call.all() || result != k_ok) return result;
  State& all = *call.all();
  Held held(all.vmm_lock);
  VmmState* vmm = vmm_state(all);
  if (!vmm) return result;
  Entry mapping{};
  uint32_t place = k_foreign;
  if (place_of(*vmm, handle, &place)) ++vmm->creations[place].mappings;
  mapping.key = address, mapping.charged = place, mapping.requested = bytes;
  vmm->mappings.insert(mapping);
  return result;
}

// A range holds whole mappings, one or many, side by side.
GUARD_EXPORT Result cuMemUnmap(Pointer address, size_t bytes) {
  GUARD_BEGIN(cuMemUnmap, Result(Pointer, size_t));
  Result result = real(address, bytes);
  if (!call.all() || result != k_ok) return result;
  State& all = *call.all();
  for (uint64_t at = address; at - address < bytes;) {
    Entry mapping{}, last{};
    bool done = false;
    {
      Held held(all.vmm_lock);
      VmmState* vmm = vmm_state(all);
      if (!vmm || !vmm->mappings.take(at, &mapping) || mapping.requested == 0) break;
      if (mapping.charged != k_foreign) {
        --vmm->creations[mapping.charged].mappings;
        done = gone(*vmm, static_cast<uint32_t>(mapping.charged), &last);
      }
    }
    if (done) release(all, last, call.caller());
    at += mapping.requested;
  }
  return result;
}
