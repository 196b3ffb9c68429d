// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <stdlib.h>

#ifndef CUFIT_VERSION
#define CUFIT_VERSION "0"
#endif

// So that a file can be asked what it is.
GUARD_EXPORT const char cufit_guard_version[] = CUFIT_VERSION;

namespace guard {
namespace {

Settings g_settings;
uint32_t g_ready;

// Bytes; anything else is none.
uint64_t number_of(const char* text) {
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9' && value < UINT64_MAX / 16; ++text)
    value = value * 10 + static_cast<uint64_t>(*text - '0');
  return *text ? 0 : value;
}

}  // namespace

// Before any thread of the program; a look-up may come even earlier.
__attribute__((constructor)) static void read_settings() {
  if (load(g_ready)) return;
  const char* off = getenv("CUFIT_GUARD");
  const char* domain = getenv("CUFIT_DOMAIN");
  const char* ring = getenv("CUFIT_RING");
  if (!(off && equal(off, "0"))) {
    if (domain) copy_text(g_settings.domain, sizeof g_settings.domain, domain);
    if (ring) copy_text(g_settings.ring_folder, sizeof g_settings.ring_folder, ring);
    if (const char* spill = getenv("CUFIT_SPILL")) g_settings.spill_bytes = number_of(spill);
    g_settings.hooking = g_settings.domain[0] || g_settings.ring_folder[0];
  }
  store(g_ready, 1u);
}

const Settings& settings() {
  if (!load(g_ready)) read_settings();
  return g_settings;
}

}  // namespace guard
