// SPDX-License-Identifier: Apache-2.0
// Whose slot is whose: claims, liveness and the sweep of dead ones (base/abi/quota_domain.h). Callers hold
// LedgerState::claiming.
#pragma once

#include "ledger.h"

namespace guard {

inline cufit_domain_slot* slot_at(const LedgerState& ledger, uint32_t index) {
  return reinterpret_cast<cufit_domain_slot*>(ledger.file + CUFIT_DOMAIN_HEADER_BYTES +
                                              size_t{index} * CUFIT_DOMAIN_SLOT_BYTES);
}

bool lock_byte(LedgerState& ledger, uint64_t offset);
void unlock_byte(LedgerState& ledger, uint64_t offset);

// A slot for this process with what `ledger.used` says in it; null when all are taken by the living.
cufit_domain_slot* claim_slot(LedgerState& ledger);
// What the program before exec left: same pid, same start, and this process maps the file as it did.
void drop_own_past(LedgerState& ledger);
uint64_t sweep_slots(LedgerState& ledger, int row, uint32_t* live);

}  // namespace guard
