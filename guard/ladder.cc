// SPDX-License-Identifier: Apache-2.0
// What happens at the limit, in this order: slots of processes that are gone, what the driver says that pools and graphs
// really hold, what they hold and do not use, a short wait (two processes may have refused each other at the
// very edge), host memory for a second refusal where `--spill SIZE` allows it, and the refusal.
#include <time.h>

#include "charge.h"
#include "pools.h"
#include "spill.h"

namespace guard {
namespace {

struct Steps {
  uint64_t swept = 0, trimmed = 0;
  uint32_t live = 0;
};
__thread Steps t_steps;  // of the last climb of this thread, for the record of its refusal

void nap() {
  SavedErrno saved;
  timespec time{0, static_cast<long>(50000 + (monotonic_ns() / 64) % 250000)};
  nanosleep(&time, nullptr);
}

}  // namespace

bool climb(Charge& charge, uint64_t bytes) {
  State& all = charge.all_;
  Device ordinal = charge.device_;
  t_steps = Steps{};
  DeviceState* device = device_state(all, ordinal);
  if (!device) return true;
  t_steps.swept = sweep(all.ledger, device->row, &t_steps.live);
  if (try_add(all, ordinal, bytes)) return true;
  refresh_pools(all, ordinal);
  refresh_graphs(all, ordinal);
  drop_gone_pools(all, ordinal);
  reconcile(all, ordinal, true);
  if (try_add(all, ordinal, bytes)) return true;
  if (charge.trim_) {
    uint64_t before = charged(all, ordinal);
    trim_pools(all, ordinal);
    trim_graphs(all, ordinal);
    t_steps.trimmed = minus_saturating(before, charged(all, ordinal));
    if (t_steps.trimmed && try_add(all, ordinal, bytes)) return true;
  }
  if (bytes > row_limit(all.ledger, device->row)) return false;
  nap();
  t_steps.swept = add_saturating(t_steps.swept, sweep(all.ledger, device->row, &t_steps.live));
  return try_add(all, ordinal, bytes);
}

void refuse(Charge& charge, uint64_t) {
  State& all = charge.all_;
  DeviceState* device = device_state(all, charge.device_);
  if (!device) return;
  know_all_devices(all);
  remember_refusal(charge.device_, charge.requested_);
  count_refusal(all.ledger, device->row, false);
  Event event{charge.kind_, CUFIT_RING_REFUSED};
  event.device = charge.device_, event.bytes = charge.requested_, event.caller = charge.caller_;
  event.result = k_out_of_memory, event.used = charged(all, charge.device_);
  record(all.ring, event);
  record_refusal(all.ring,
                 {charge.kind_, CUFIT_RING_REFUSED, charge.device_, charge.requested_, event.used,
                  domain_used(all.ledger, device->row), row_limit(all.ledger, device->row),
                  t_steps.swept, t_steps.trimmed, UINT64_MAX, charge.caller_, t_steps.live});
}

}  // namespace guard
