// SPDX-License-Identifier: Apache-2.0
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slots.h"

namespace guard {
namespace {

cufit_domain_header& header(const LedgerState& ledger) {
  return *reinterpret_cast<cufit_domain_header*>(ledger.file);
}

bool usable(const cufit_domain_header& head, uint64_t bytes) {
  return memcmp(head.magic, CUFIT_DOMAIN_MAGIC, 8) == 0 && head.version == CUFIT_DOMAIN_VERSION &&
         head.header_bytes == CUFIT_DOMAIN_HEADER_BYTES &&
         head.slot_bytes == CUFIT_DOMAIN_SLOT_BYTES && head.slot_count >= 1 &&
         head.slot_count <= CUFIT_DOMAIN_MAX_SLOTS &&
         CUFIT_DOMAIN_HEADER_BYTES + uint64_t{head.slot_count} * CUFIT_DOMAIN_SLOT_BYTES <= bytes;
}

bool is_row(const LedgerState& ledger, int row) {
  return ledger.file && row >= 0 && row < static_cast<int>(CUFIT_DOMAIN_DEVICES);
}

int match_row(LedgerState& ledger, const uint8_t uuid[16], const char* pci, bool mig) {
  static const uint8_t k_none[16] = {};
  for (int i = 0; i < static_cast<int>(CUFIT_DOMAIN_DEVICES); ++i) {
    cufit_domain_device& row = header(ledger).devices[i];
    if (load(row.ready) == 1 && memcmp(row.uuid, k_none, 16) != 0 &&
        memcmp(row.uuid, uuid, 16) == 0)
      return i;
  }
  for (int i = 0; !mig && pci[0] && i < static_cast<int>(CUFIT_DOMAIN_DEVICES); ++i) {
    cufit_domain_device& row = header(ledger).devices[i];
    // By address only where one of the two has no uuid: a MIG instance has its card's address.
    bool no_uuid = memcmp(row.uuid, k_none, 16) == 0 || memcmp(uuid, k_none, 16) == 0;
    if (load(row.ready) == 1 && no_uuid && !(row.flags & CUFIT_DOMAIN_DEVICE_MIG) &&
        strncmp(row.pci, pci, sizeof row.pci) == 0)
      return i;
  }
  return k_no_row;
}

// This process's slot, claimed when it is first needed, or again if somebody took it for dead.
cufit_domain_slot* own_slot(LedgerState& ledger) {
  if (load(ledger.claimed) == 1) {
    cufit_domain_slot* slot = slot_at(ledger, ledger.slot);
    if (load(slot->token) == ledger.token) return slot;
  }
  SavedErrno saved;
  Held held(ledger.claiming);
  if (load(ledger.claimed) == 1) {
    cufit_domain_slot* slot = slot_at(ledger, ledger.slot);
    if (load(slot->token) == ledger.token) return slot;
  }
  return claim_slot(ledger);
}

uint64_t granted_sum(const LedgerState& ledger, int row) {
  uint64_t sum = 0;
  uint32_t count = load(header(ledger).used_slots);
  if (count > header(ledger).slot_count) count = header(ledger).slot_count;
  for (uint32_t i = 0; i < count; ++i) {
    const cufit_domain_slot* slot = slot_at(ledger, i);
    sum = add_saturating(sum, smaller(load(slot->granted[row]), load(slot->used[row])));
  }
  return sum;
}

// Slots are read one after another: memory that goes from one process to another meanwhile may be seen in both. What two
// readings in a row say was there at one moment; of readings that never agree the smallest counts, if the limit allows it.
void note_peak(LedgerState& ledger, int row) {
  cufit_domain_device& device = header(ledger).devices[row];
  uint64_t sum = granted_sum(ledger, row);
  bool sure = false;
  for (int tries = 0; tries < 4 && !sure && sum > load(device.peak_bytes); ++tries) {
    uint64_t again = granted_sum(ledger, row);
    sure = again == sum;
    sum = smaller(sum, again);
  }
  if (sum > load(device.peak_bytes) && (sure || sum <= load(device.limit_bytes)))
    raise_to(device.peak_bytes, sum);
}

// The domain as this program has it mapped: a forked child inherits that, and its path may be gone by then.
LedgerState g_mapped;

bool take_mapped(LedgerState& ledger) {
  if (!g_mapped.file) return false;
  ledger.descriptor = g_mapped.descriptor;
  ledger.file_bytes = g_mapped.file_bytes;
  ledger.inode = g_mapped.inode;
  ledger.device_major = g_mapped.device_major, ledger.device_minor = g_mapped.device_minor;
  store(ledger.file, g_mapped.file);
  return true;
}

}  // namespace

bool open_domain(LedgerState& ledger, const char* path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return take_mapped(ledger);
  FileFacts facts;
  bool mine = file_facts(file, &facts) && (facts.mode & 0170000) == 0100000 &&
              (facts.owner == geteuid() || facts.owner == 0) && (facts.mode & 022) == 0 &&
              facts.bytes >= CUFIT_DOMAIN_HEADER_BYTES &&
              facts.bytes <= CUFIT_DOMAIN_HEADER_BYTES +
                                 uint64_t{CUFIT_DOMAIN_MAX_SLOTS} * CUFIT_DOMAIN_SLOT_BYTES;
  void* at =
      mine ? mmap(nullptr, facts.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (at == MAP_FAILED) {
    close(file);
    return false;
  }
  if (!usable(*static_cast<cufit_domain_header*>(at), facts.bytes)) {
    munmap(at, facts.bytes);
    close(file);
    return false;
  }
  ledger.descriptor = move_high(file);
  ledger.file_bytes = facts.bytes;
  ledger.inode = facts.inode;
  ledger.device_major = facts.device_major, ledger.device_minor = facts.device_minor;
  store(ledger.file, static_cast<uint8_t*>(at));
  g_mapped = ledger;
  drop_own_past(ledger);
  return true;
}

const cufit_domain_header& domain_header(const LedgerState& ledger) { return header(ledger); }

cufit_domain_device* domain_row(LedgerState& ledger, int row) {
  return is_row(ledger, row) ? &header(ledger).devices[row] : nullptr;
}

int find_row(LedgerState& ledger, const uint8_t uuid[16], const char* pci, bool mig,
             uint64_t total_bytes) {
  if (!ledger.file) return k_no_row;
  int found = match_row(ledger, uuid, pci, mig);
  if (found != k_no_row || header(ledger).default_limit_bytes == CUFIT_DOMAIN_NO_LIMIT)
    return found;
  SavedErrno saved;
  Held held(ledger.claiming);
  // Byte 0 parts processes. A stopped one may hold it: after 100 ms the device stays without a row.
  for (int tries = 0; !lock_byte(ledger, 0); ++tries) {
    if (tries == 1000) return k_no_row;
    usleep(100);
  }
  found = match_row(ledger, uuid, pci, mig);
  for (int i = 0; found == k_no_row && i < static_cast<int>(CUFIT_DOMAIN_DEVICES); ++i) {
    cufit_domain_device& row = header(ledger).devices[i];
    if (load(row.ready) == 1) continue;
    memcpy(row.uuid, uuid, 16);
    copy_text(row.pci, sizeof row.pci, pci);
    row.limit_bytes = header(ledger).default_limit_bytes;
    row.context_bytes = header(ledger).default_context_bytes;
    row.total_bytes = total_bytes;
    row.flags = mig ? CUFIT_DOMAIN_DEVICE_MIG : 0;
    store(row.ready, 1u);
    found = i;
  }
  unlock_byte(ledger, 0);
  return found;
}

uint64_t row_limit(const LedgerState& ledger, int row) {
  return is_row(ledger, row) ? load(header(ledger).devices[row].limit_bytes)
                             : CUFIT_DOMAIN_NO_LIMIT;
}

uint64_t domain_used(const LedgerState& ledger, int row) {
  if (!is_row(ledger, row)) return 0;
  uint64_t sum = 0;
  uint32_t count = load(header(ledger).used_slots);
  if (count > header(ledger).slot_count) count = header(ledger).slot_count;
  for (uint32_t i = 0; i < count; ++i)
    sum = add_saturating(sum, load(slot_at(ledger, i)->used[row]));
  return sum;
}

uint64_t* own_charged(LedgerState& ledger, int row) {
  return is_row(ledger, row) ? &ledger.used[row] : nullptr;
}
uint64_t* own_granted(LedgerState& ledger, int row) {
  return is_row(ledger, row) ? &ledger.granted[row] : nullptr;
}

bool try_charge(LedgerState& ledger, int row, uint64_t bytes) {
  if (!is_row(ledger, row)) return true;
  uint64_t limit = row_limit(ledger, row);
  if (bytes > limit) return false;
  cufit_domain_slot* slot = own_slot(ledger);
  // No slot: more processes than the launcher made room for. A limit that counts only some would be none.
  if (!slot && limit != CUFIT_DOMAIN_NO_LIMIT) return false;
  fetch_add(ledger.used[row], bytes);
  if (slot) fetch_add(slot->used[row], bytes);
  if (limit == CUFIT_DOMAIN_NO_LIMIT || domain_used(ledger, row) <= limit) return true;
  discharge(ledger, row, bytes);
  return false;
}

void grant(LedgerState& ledger, int row, int64_t bytes) {
  if (!is_row(ledger, row) || bytes == 0) return;
  const uint64_t change = static_cast<uint64_t>(bytes);  // of a negative one: modulo 2^64
  fetch_add(ledger.granted[row], change);
  if (load(ledger.claimed) == 1) {
    cufit_domain_slot* slot = slot_at(ledger, ledger.slot);
    if (load(slot->token) == ledger.token) fetch_add(slot->granted[row], change);
  }
  if (bytes > 0) note_peak(ledger, row);
}

void charge_fact(LedgerState& ledger, int row, uint64_t bytes) {
  if (!is_row(ledger, row) || bytes == 0) return;
  cufit_domain_slot* slot = own_slot(ledger);
  fetch_add(ledger.used[row], bytes);
  if (slot) fetch_add(slot->used[row], bytes);
}

void discharge(LedgerState& ledger, int row, uint64_t bytes) {
  if (!is_row(ledger, row) || bytes == 0) return;
  fetch_sub(ledger.used[row], bytes);
  if (load(ledger.claimed) != 1) return;
  cufit_domain_slot* slot = slot_at(ledger, ledger.slot);
  if (load(slot->token) == ledger.token) fetch_sub(slot->used[row], bytes);
}

void set_slot_overhead(LedgerState& ledger, int row, uint64_t bytes) {
  if (!is_row(ledger, row)) return;
  store(ledger.overhead[row], bytes);
  if (cufit_domain_slot* slot = own_slot(ledger)) store(slot->overhead[row], bytes);
}

void count_refusal(LedgerState& ledger, int row, bool by_driver) {
  if (!is_row(ledger, row)) return;
  cufit_domain_device& device = header(ledger).devices[row];
  if (by_driver) {
    fetch_add(device.driver_refusals, uint64_t{1});
    return;
  }
  fetch_add(device.refusals, uint64_t{1});
  if (cufit_domain_slot* slot = own_slot(ledger)) fetch_add(slot->refusals[row], 1u);
}

uint64_t sweep(LedgerState& ledger, int row, uint32_t* live) {
  *live = 0;
  if (!is_row(ledger, row)) return 0;
  SavedErrno saved;
  Held held(ledger.claiming);
  return sweep_slots(ledger, row, live);
}

}  // namespace guard
