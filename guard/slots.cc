// SPDX-License-Identifier: Apache-2.0
#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "settings.h"

namespace guard {
namespace {

uint64_t offset_of(uint32_t index) {
  return CUFIT_DOMAIN_HEADER_BYTES + uint64_t{index} * CUFIT_DOMAIN_SLOT_BYTES;
}

bool set_lock(const LedgerState& ledger, uint64_t offset, short type) {
  struct flock request;
  memset(&request, 0, sizeof request);
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = static_cast<off_t>(offset);
  request.l_len = 1;
  int result;
  do {
    result = fcntl(ledger.descriptor, F_SETLK, &request);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

// The program may have closed the descriptor (daemons close all) or made another file of its number.
void keep_descriptor(LedgerState& ledger) {
  FileFacts facts;
  if (file_facts(ledger.descriptor, &facts) && facts.inode == ledger.inode &&
      facts.device_major == ledger.device_major && facts.device_minor == ledger.device_minor)
    return;
  int file = open(settings().domain, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  if (!file_facts(file, &facts) || facts.inode != ledger.inode ||
      facts.device_major != ledger.device_major || facts.device_minor != ledger.device_minor) {
    close(file);
    return;
  }
  ledger.descriptor = move_high(file);
  if (ledger.claimed) set_lock(ledger, offset_of(ledger.slot), F_WRLCK);
}

// Does a line of its maps ("7f..-7f.. rw-s 00000000 08:01 1234 /path") name the domain's inode? 1 yes, 0 no, -1 not
// readable. The inode alone: overlays show another device there than statx does.
int maps_file(const LedgerState& ledger, uint32_t pid) {
  char path[64], wanted[32], chunk[4096];
  char* end = path + sizeof path;
  append(append_number(append(path, end, "/proc/"), end, pid), end, "/maps");
  end = wanted + sizeof wanted;
  append(append_number(append(wanted, end, " "), end, ledger.inode), end, " ");
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  size_t length = strlen(wanted), kept = 0;
  int found = 0;
  while (!found) {
    long got = read(file, chunk + kept, sizeof chunk - 1 - kept);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) found = -1;
    if (got <= 0) break;
    size_t filled = kept + static_cast<size_t>(got);
    chunk[filled] = 0;
    if (strstr(chunk, wanted)) found = 1;
    kept = filled < length ? filled : length;
    memmove(chunk, chunk + filled - kept, kept);
  }
  close(file);
  return found;
}

// The lock of its byte is ours for the moment, so nobody holds it: is its process gone all the same?
bool owner_is_gone(const LedgerState& ledger, const cufit_domain_slot& slot) {
  // A process of another pid namespace cannot be looked up; its lock is all there is.
  if (slot.pid_namespace != own_pid_namespace()) return true;
  uint32_t pid = slot.pid;
  if (pid == 0 || (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)) return true;
  uint64_t started = start_ticks(pid);
  if (started != 0 && started != slot.start_ticks) return true;
  return maps_file(ledger, pid) ==
         0;  // exec: another program, with the pid and the start of the old one
}

bool holds_anything(const cufit_domain_slot& slot) {
  if (load(slot.token) != 0) return true;
  for (const uint64_t& bytes : slot.used) {
    if (load(bytes) != 0) return true;
  }
  return false;
}

// Numbers first: a sweeper that is killed here leaves a slot that is swept again.
void clear(cufit_domain_slot& slot) {
  for (uint64_t& bytes : slot.used) store(bytes, uint64_t{0});
  for (uint64_t& bytes : slot.overhead) store(bytes, uint64_t{0});
  for (uint64_t& bytes : slot.granted) store(bytes, uint64_t{0});
  for (uint32_t& count : slot.refusals) store(count, 0u);
  store(slot.token, uint64_t{0});
}

cufit_domain_slot* take(LedgerState& ledger, uint32_t index) {
  auto& head = *reinterpret_cast<cufit_domain_header*>(ledger.file);
  cufit_domain_slot& slot = *slot_at(ledger, index);
  clear(slot);
  uint32_t pid = static_cast<uint32_t>(getpid());
  store(slot.pid, pid);
  store(slot.start_ticks, start_ticks(pid));
  store(slot.pid_namespace, own_pid_namespace());
  store(slot.claimed_ns, realtime_ns());
  read_text("/proc/self/comm", slot.name, sizeof slot.name);
  for (char& c : slot.name) {
    if (c == '\n') c = 0;
  }
  ledger.slot = index;
  ledger.token = (monotonic_ns() << 16 ^ pid) | 1;
  // Seen by others from here on, before the first byte is charged.
  raise_to(head.used_slots, index + 1);
  store(slot.token, ledger.token);
  for (uint32_t row = 0; row < CUFIT_DOMAIN_DEVICES; ++row) {
    store(slot.used[row], load(ledger.used[row]));
    store(slot.overhead[row], load(ledger.overhead[row]));
    store(slot.granted[row], load(ledger.granted[row]));
  }
  store(ledger.claimed, 1u);
  return &slot;
}

}  // namespace

bool lock_byte(LedgerState& ledger, uint64_t offset) { return set_lock(ledger, offset, F_WRLCK); }
void unlock_byte(LedgerState& ledger, uint64_t offset) { set_lock(ledger, offset, F_UNLCK); }

void drop_own_past(LedgerState& ledger) {
  uint32_t pid = static_cast<uint32_t>(getpid());
  uint32_t count = load(domain_header(ledger).used_slots);
  if (count > domain_header(ledger).slot_count) count = domain_header(ledger).slot_count;
  for (uint32_t i = 0; i < count; ++i) {
    cufit_domain_slot& slot = *slot_at(ledger, i);
    if (load(slot.token) == 0 || slot.pid != pid || slot.start_ticks != start_ticks(pid) ||
        slot.pid_namespace != own_pid_namespace() || !lock_byte(ledger, offset_of(i)))
      continue;
    clear(slot);
    unlock_byte(ledger, offset_of(i));
  }
}

cufit_domain_slot* claim_slot(LedgerState& ledger) {
  keep_descriptor(ledger);
  uint32_t own = ledger.claimed ? ledger.slot : UINT32_MAX;
  store(ledger.claimed, 0u);
  if (own != UINT32_MAX) unlock_byte(ledger, offset_of(own));
  const auto& head = domain_header(ledger);
  // The free ones first, then those of the dead.
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < head.slot_count; ++i) {
      cufit_domain_slot& slot = *slot_at(ledger, i);
      bool free = load(slot.token) == 0;
      if (free != (pass == 0) || !lock_byte(ledger, offset_of(i))) continue;
      if (load(slot.token) == 0 || (pass == 1 && owner_is_gone(ledger, slot)))
        return take(ledger, i);
      unlock_byte(ledger, offset_of(i));
    }
  }
  return nullptr;
}

uint64_t sweep_slots(LedgerState& ledger, int row, uint32_t* live) {
  keep_descriptor(ledger);
  uint64_t given_back = 0;
  uint32_t count = load(domain_header(ledger).used_slots);
  if (count > domain_header(ledger).slot_count) count = domain_header(ledger).slot_count;
  for (uint32_t i = 0; i < count; ++i) {
    cufit_domain_slot& slot = *slot_at(ledger, i);
    if (ledger.claimed && i == ledger.slot) {
      ++*live;
      continue;
    }
    if (!holds_anything(slot)) continue;
    if (!lock_byte(ledger, offset_of(i))) {
      ++*live;
      continue;
    }
    if (load(slot.token) == 0 || owner_is_gone(ledger, slot)) {
      given_back = add_saturating(given_back, load(slot.used[row]));
      clear(slot);
    } else {
      ++*live;
    }
    unlock_byte(ledger, offset_of(i));
  }
  return given_back;
}

}  // namespace guard
