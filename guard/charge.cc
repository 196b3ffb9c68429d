// SPDX-License-Identifier: Apache-2.0
#include "charge.h"

#include "nvml.h"
#include "spill.h"

namespace guard {
namespace {

bool limited(const DeviceState& device) { return device.row != k_no_row; }

uint64_t pages_of(uint64_t small_bytes) { return round_up(small_bytes, k_page); }

// Room for `bytes` more in the pages of small allocations. What must be charged for it is told first, with
// nothing changed, then done: no lock is held over the ladder.
uint64_t small_growth(DeviceState& device, uint64_t bytes) {
  Held held(device.small);
  uint64_t more = pages_of(device.small_bytes + bytes) - pages_of(device.small_bytes);
  if (more == 0) device.small_bytes += bytes;
  return more;
}

uint64_t small_add(DeviceState& device, uint64_t bytes) {
  Held held(device.small);
  uint64_t before = pages_of(device.small_bytes);
  device.small_bytes += bytes;
  return pages_of(device.small_bytes) - before;
}

uint64_t small_remove(DeviceState& device, uint64_t bytes) {
  Held held(device.small);
  uint64_t before = pages_of(device.small_bytes);
  device.small_bytes = minus_saturating(device.small_bytes, bytes);
  return before - pages_of(device.small_bytes);
}

}  // namespace

bool try_add(State& all, Device ordinal, uint64_t bytes) {
  DeviceState* device = device_state(all, ordinal);
  if (!device) return true;
  if (limited(*device)) return try_charge(all.ledger, device->row, bytes);
  fetch_add(*device->charged, bytes);
  return true;
}

void add_undecided(State& all, Device ordinal, uint64_t bytes) {
  DeviceState* device = device_state(all, ordinal);
  if (!device) return;
  if (limited(*device))
    charge_fact(all.ledger, device->row, bytes);
  else
    fetch_add(*device->charged, bytes);
}

void take_undecided(State& all, Device ordinal, uint64_t bytes) {
  DeviceState* device = device_state(all, ordinal);
  if (!device || bytes == 0) return;
  if (limited(*device))
    discharge(all.ledger, device->row, bytes);
  else
    fetch_sub(*device->charged, bytes);
}

void grant(State& all, Device ordinal, int64_t bytes) {
  DeviceState* device = device_state(all, ordinal);
  if (!device || bytes == 0) return;
  if (limited(*device))
    grant(all.ledger, device->row, bytes);
  else
    fetch_add(*device->granted, static_cast<uint64_t>(bytes));
  cufit_ring_device* shown = bytes > 0 ? ring_device(all.ring, ordinal) : nullptr;
  // Never more than what is charged: between two threads' stores the difference may be below zero for an instant.
  if (shown) raise_to(shown->peak_bytes, smaller(load(*device->granted), load(*device->charged)));
}

void add_fact(State& all, Device ordinal, uint64_t bytes) {
  add_undecided(all, ordinal, bytes);
  grant(all, ordinal, static_cast<int64_t>(bytes));
}

void subtract(State& all, Device ordinal, uint64_t bytes) {
  grant(all, ordinal, -static_cast<int64_t>(bytes));
  take_undecided(all, ordinal, bytes);
}

uint64_t charged(State& all, Device ordinal) {
  DeviceState* device = device_state(all, ordinal);
  return device ? load(*device->charged) : 0;
}

Charge::Charge(State& all, Device device, uint8_t kind, uint64_t requested, const void* caller)
    : all_(all), device_(device), kind_(kind), requested_(requested), caller_(caller) {
  counted_ = device_state(all, device) != nullptr;
}

void Charge::give_back() {
  if (!kept_ && small_) {
    // Blocks of others may lie in the page that was charged for this one: then it is theirs now.
    uint64_t pages = small_remove(all_.devices[device_], taken_);
    take_undecided(all_, device_, pages);
    grant(all_, device_, static_cast<int64_t>(undecided_) - static_cast<int64_t>(pages));
  } else if (!kept_) {
    take_undecided(all_, device_, taken_);
  }
  taken_ = undecided_ = 0;
}

void Charge::correct(uint64_t bytes) {
  if (small_) return;
  if (bytes > taken_) add_undecided(all_, device_, bytes - taken_);
  if (bytes < taken_) take_undecided(all_, device_, taken_ - bytes);
  taken_ = undecided_ = bytes;
}

void Charge::note(uint64_t key) {
  Event event{kind_, CUFIT_RING_GRANTED};
  event.device = device_, event.address = key, event.bytes = requested_, event.caller = caller_;
  event.used = charged(all_, device_);
  record(all_.ring, event);
}

Charge::~Charge() {
  give_back();
  if (kept_) note(key_);
}

bool Charge::try_take(uint64_t bytes) {
  if (!try_add(all_, device_, bytes)) return false;
  taken_ = undecided_ = bytes;
  return true;
}

bool Charge::spill_instead() {
  spilled_ = spill_to_ && spill_refused(all_, device_, requested_, caller_, spill_to_);
  return spilled_;
}

bool Charge::take(uint64_t bytes) {
  if (try_take(bytes)) return true;
  if (climb(*this, bytes)) {
    taken_ = undecided_ = bytes;
    return true;
  }
  if (spill_instead()) return true;
  refuse(*this, bytes);
  return false;
}

bool Charge::take_block(uint64_t bytes) {
  if (bytes >= k_packed_below || !counted_) return take(round_up(bytes, k_page));
  DeviceState& device = all_.devices[device_];
  uint64_t packed = round_up(bytes, 512);
  uint64_t more = small_growth(device, packed);
  if (more != 0) {
    if (!take(more)) return false;
    // Others may have made the page meanwhile.
    uint64_t needed = small_add(device, packed);
    if (needed < more) take_undecided(all_, device_, more - needed);
    undecided_ = needed;
  }
  small_ = true;
  taken_ = packed;
  return true;
}

Entry Charge::keep(uint64_t key, void* context) {
  kept_ = true;
  grant(all_, device_, static_cast<int64_t>(undecided_));
  Entry entry{};
  entry.key = key, entry.charged = taken_, entry.requested = requested_, entry.context = context;
  entry.device = static_cast<uint8_t>(device_ < 0 ? 255 : device_);
  entry.kind = kind_, entry.small = small_ ? 1 : 0;
  key_ = key;
  return entry;
}

void Charge::driver_refused(Result result) {
  give_back();  // before the record: it tells what is held, and the request is not
  Event event{kind_, CUFIT_RING_DRIVER_REFUSED};
  event.device = device_, event.bytes = requested_, event.caller = caller_, event.result = result;
  event.used = charged(all_, device_);
  record(all_.ring, event);
  DeviceState* device = device_state(all_, device_);
  if (result != k_out_of_memory || !device) return;
  remember_refusal(device_, requested_);
  count_refusal(all_.ledger, device->row, true);
  uint32_t live = 0;
  const uint64_t swept = sweep(all_.ledger, device->row, &live);
  size_t free_bytes = 0, total = 0;
  auto* ask = real_as<Result(size_t*, size_t*)>(hook_cuMemGetInfo_v2);
  bool told = ask && ask(&free_bytes, &total) == k_ok;
  record_refusal(all_.ring,
                 {kind_, CUFIT_RING_DRIVER_REFUSED, device_, requested_, event.used,
                  domain_used(all_.ledger, device->row), row_limit(all_.ledger, device->row), swept,
                  0, told ? free_bytes : UINT64_MAX, caller_, live});
}

void release(State& all, const Entry& entry, const void* caller) {
  if (entry.small)
    subtract(all, entry.device, small_remove(all.devices[entry.device], entry.charged));
  else
    subtract(all, entry.device, entry.charged);
  Event event{entry.kind, CUFIT_RING_RELEASED};
  event.device = entry.device, event.address = entry.key, event.bytes = entry.requested;
  event.caller = caller, event.used = charged(all, entry.device);
  record(all.ring, event);
}

void set_overhead(State& all, Device ordinal, uint64_t bytes) {
  DeviceState* device = device_state(all, ordinal);
  if (!device) return;
  uint64_t before = __atomic_exchange_n(&device->overhead, bytes, __ATOMIC_SEQ_CST);
  if (bytes > before) add_fact(all, ordinal, bytes - before);
  if (bytes < before) subtract(all, ordinal, before - bytes);
  if (bytes == before) return;
  set_slot_overhead(all.ledger, device->row, bytes);
  if (cufit_ring_device* shown = ring_device(all.ring, ordinal))
    store(shown->overhead_bytes, bytes);
  Event event{CUFIT_RING_KIND_OVERHEAD, CUFIT_RING_GRANTED};
  event.device = ordinal, event.bytes = bytes, event.used = charged(all, ordinal);
  record(all.ring, event);
}

namespace {

// What the driver takes without an allocation that is seen (NCCL's kernels: 350 MiB on an H200) is found by asking. The
// nearer the limit, the sooner it must be known; asking takes a part of a millisecond.
uint64_t pause_before_reconcile(const State& all, const DeviceState& device) {
  const uint64_t limit = row_limit(all.ledger, device.row), used = load(*device.charged);
  if (used >= limit - limit / 8) return 20000000u;
  return used >= limit / 2 ? 100000000u : 2000000000u;
}

}  // namespace

bool listed_bytes(const DeviceState& device, uint64_t* bytes) {
  const uint64_t charged_now = load(*device.charged);
  *bytes = charged_now - load(device.overhead);
  return load(*device.granted) == charged_now;
}

void reconcile(State& all, Device ordinal, bool now) {
  DeviceState* device = device_state(all, ordinal);
  if (!device || !all.ledger.file || load(device->contexts) == 0 ||
      !(domain_header(all.ledger).flags & CUFIT_DOMAIN_NVML_OWN_PROCESS))
    return;
  // Asked at each allocation, so by the cheap clock, which may be a tick behind the time that is kept.
  uint64_t time = now ? monotonic_ns() : coarse_ns(), last = load(device->reconciled_ns);
  if (time < last + (now ? 5000000u : pause_before_reconcile(all, *device)) ||
      !compare_set(device->reconciled_ns, last, time))
    return;
  uint64_t own = 0, listed = 0, again = 0;
  if (!listed_bytes(*device, &listed) || !nvml_own_bytes(all, ordinal, &own) ||
      !listed_bytes(*device, &again) || again != listed)
    return;
  set_overhead(all, ordinal, minus_saturating(own, listed));
}

}  // namespace guard
