// SPDX-License-Identifier: Apache-2.0
// The quota domain (base/abi/quota_domain.h) as this process uses it. To take memory it adds to its own slot, then sums
// all slots: of two processes that ask at once at least one sees the other, so the sum of what was granted never
// passes the limit, and there is no total that a killed process could leave wrong. No lock is held meanwhile.
#pragma once

#include "base/abi/quota_domain.h"
#include "platform.h"

namespace guard {

constexpr int k_no_row = -1;

// Process-private; lies in pages that a forked child finds zeroed, so that the child has no slot.
struct LedgerState {
  uint8_t* file;  // null: there is no domain
  size_t file_bytes;
  uint64_t inode;
  uint32_t device_major, device_minor;
  int descriptor;
  uint32_t claimed;  // 0 no, 1 yes
  uint32_t slot;
  uint64_t token;
  uint64_t used
      [CUFIT_DOMAIN_DEVICES];  // what the slot should say; the truth if it was lost, or never taken
  uint64_t overhead[CUFIT_DOMAIN_DEVICES];
  uint64_t granted[CUFIT_DOMAIN_DEVICES];
  Lock claiming;  // claims and sweeps of this process: record locks do not part its threads
};

// Maps the file; false where it cannot be used (not a domain, another user's, cut short).
bool open_domain(LedgerState& ledger, const char* path);

const cufit_domain_header& domain_header(const LedgerState& ledger);
cufit_domain_device* domain_row(LedgerState& ledger, int row);
// The row of a device, added where the launcher gave a limit for all; k_no_row: it is not limited.
int find_row(LedgerState& ledger, const uint8_t uuid[16], const char* pci, bool mig,
             uint64_t total_bytes);

// What this process has charged and was granted on a row; null without one. The functions below keep them.
uint64_t* own_charged(LedgerState& ledger, int row);
uint64_t* own_granted(LedgerState& ledger, int row);

// Adds `bytes` if the domain's sum stays within the limit. Claims a slot the first time. What is charged counts against the
// limit at once, and is no part of the high water until grant() says that the program has it.
bool try_charge(LedgerState& ledger, int row, uint64_t bytes);
void grant(LedgerState& ledger, int row, int64_t bytes);
// Adds what exists already, whatever the limit says.
void charge_fact(LedgerState& ledger, int row, uint64_t bytes);
void discharge(LedgerState& ledger, int row, uint64_t bytes);
void set_slot_overhead(LedgerState& ledger, int row, uint64_t bytes);
void count_refusal(LedgerState& ledger, int row, bool by_driver);

uint64_t row_limit(const LedgerState& ledger, int row);
uint64_t domain_used(const LedgerState& ledger, int row);
// Clears slots of processes that are gone; what they held on `row`, and how many live ones there are.
uint64_t sweep(LedgerState& ledger, int row, uint32_t* live);

}  // namespace guard
