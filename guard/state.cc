// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <string.h>
#include <unistd.h>

#include "resolver.h"
#include "settings.h"

namespace guard {
namespace {

State* g_state;
char g_unknown[4][64];  // names of calls, kept until there is a file to write them to

// Reports of one name, however often it is asked for.
void remember_name(char (&list)[4][64], const char* name) {
  for (auto& place : list) {
    if (equal(place, name)) return;
    if (place[0]) continue;
    copy_text(place, sizeof place, name);
    return;
  }
}

void report_names(State& all) {
  char foreign[64];
  find_foreign(foreign, sizeof foreign);
  auto* head = reinterpret_cast<cufit_domain_header*>(all.ledger.file);
  if (head && foreign[0]) copy_text(head->foreign, sizeof head->foreign, foreign);
  if (all.ring.header && foreign[0])
    copy_text(all.ring.header->foreign, sizeof all.ring.header->foreign, foreign);
  for (auto& name : g_unknown) {
    if (!name[0]) continue;
    if (head) remember_name(head->unknown, name);
    if (all.ring.header) remember_name(all.ring.header->unknown, name);
  }
}

void start(State& all) {
  SavedErrno saved;
  forget_thread_id();
  const Settings& said = settings();
  uint32_t flags = 0;
  if (said.domain[0]) {
    if (open_domain(all.ledger, said.domain))
      flags |= CUFIT_RING_QUOTA;
    else
      flags |= CUFIT_RING_DOMAIN_FAILED;
  }
  if (flags & CUFIT_RING_QUOTA && domain_header(all.ledger).flags & CUFIT_DOMAIN_NVML_OWN_PROCESS)
    flags |= CUFIT_RING_NVML;
  if (said.ring_folder[0] && open_ring(all.ring, said.ring_folder, flags)) {
    int version = 0;
    if (flags & CUFIT_RING_QUOTA)
      copy_text(all.ring.header->share, sizeof all.ring.header->share,
                domain_header(all.ledger).name);
    if (driver().get_version && driver().get_version(&version) == k_ok)
      all.ring.header->driver_version = static_cast<uint32_t>(version);
  }
  report_names(all);
}

State* make_pages() {
  bool wiped = false;
  auto* fresh = static_cast<State*>(map_wiped_pages(sizeof(State), &wiped));
  if (!fresh) return nullptr;
  fresh->check_pid = wiped ? 0 : 1;
  if (compare_set(g_state, static_cast<State*>(nullptr), fresh)) return fresh;
  unmap_pages(fresh, sizeof(State));
  return load(g_state);
}

// A fork on a kernel that does not wipe: the child's own pages replace the parent's.
State* after_fork(State* old) {
  if (!old->check_pid || load(old->phase) != 2 || old->pid == static_cast<uint32_t>(getpid()))
    return old;
  memset(static_cast<void*>(old), 0, sizeof(State));
  old->check_pid = 1;
  return old;
}

}  // namespace

State* state() {
  State* all = load(g_state);
  if (all && load(all->phase) == 2 && !all->check_pid) return all;
  if (!settings().hooking) return nullptr;
  if (!all) all = make_pages();
  if (!all) return nullptr;
  all = after_fork(all);
  if (load(all->phase) == 2) return all;
  if (!compare_set(all->phase, 0u, 1u)) {
    while (load(all->phase) == 1) usleep(50);
    return all;
  }
  all->pid = static_cast<uint32_t>(getpid());
  start(*all);
  store(all->phase, 2u);
  return all;
}

State* state_if_made() {
  State* all = load(g_state);
  return all && load(all->phase) == 2 && !all->check_pid ? all : nullptr;
}

DeviceState* device_state(State& all, Device ordinal) {
  if (ordinal < 0 || ordinal >= k_most_devices) return nullptr;
  DeviceState& device = all.devices[ordinal];
  if (load(device.known) == 2) return &device;
  // Two threads that look at once write the same.
  const Driver& cuda = driver();
  uint8_t uuid[16] = {}, card[16] = {};
  char pci[16] = "";
  bool known = false;
  if (cuda.uuid && cuda.uuid(card, ordinal) == k_ok) known = true, memcpy(uuid, card, 16);
  if (cuda.uuid_v2 && cuda.uuid_v2(uuid, ordinal) != k_ok) memcpy(uuid, card, 16);
  if (cuda.pci && cuda.pci(pci, sizeof pci, ordinal) == k_ok) known = true;
  if (!known) return nullptr;
  for (char& c : pci) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  bool mig = memcmp(uuid, card, 16) != 0;
  size_t total = 0;
  if (auto* ask = real_as<Result(size_t*, Device)>(hook_cuDeviceTotalMem_v2)) ask(&total, ordinal);
  int row = find_row(all.ledger, uuid, pci, mig, total);
  Held held(all.contexts_lock);
  if (load(device.known) == 2) return &device;
  memcpy(device.uuid, uuid, 16);
  memcpy(device.pci, pci, sizeof pci);
  device.is_mig = mig ? 1 : 0;
  device.row = row;
  device.charged = own_charged(all.ledger, row);
  device.granted = own_granted(all.ledger, row);
  if (!device.charged) device.charged = &device.unlimited[0], device.granted = &device.unlimited[1];
  if (cufit_ring_device* shown = ring_device(all.ring, ordinal)) {
    memcpy(shown->uuid, uuid, 16);
    memcpy(shown->pci, pci, sizeof pci);
    shown->limit_bytes = row_limit(all.ledger, row);
    shown->total_bytes = total;
    shown->told_free_bytes = shown->told_total_bytes = UINT64_MAX;
    store(shown->seen, 1u);
  }
  store(device.known, 2u);
  return &device;
}

void know_all_devices(State& all) {
  using Count = Result(int*);
  auto* ask = reinterpret_cast<Count*>(driver_function("cuDeviceGetCount"));
  int count = 0;
  if (!ask || ask(&count) != k_ok) return;
  for (Device each = 0; each < count && each < k_most_devices; ++each) device_state(all, each);
}

void note_unknown_call(const char* name, int version) {
  char text[64];
  char* end = text + sizeof text;
  append_number(append(append(text, end, name), end, "@"), end, static_cast<uint64_t>(version));
  remember_name(g_unknown, text);
  State* all = load(g_state);
  if (!all || load(all->phase) != 2) return;
  if (all->ledger.file)
    remember_name(reinterpret_cast<cufit_domain_header*>(all->ledger.file)->unknown, text);
  if (all->ring.header) remember_name(all->ring.header->unknown, text);
}

}  // namespace guard
