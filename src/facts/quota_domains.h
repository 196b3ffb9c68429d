// SPDX-License-Identifier: Apache-2.0
// The quota domains of a machine (`cufit run --vram`) as their files and the kernel's locks say: what the living
// processes have charged. Filled by host/quota/domain_files.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/system/quota_domain.h"

namespace cufit::facts {

struct LiveDomain {
  std::string path;
  uint32_t owner = 0;  // uid
  // Processes: those that live. QuotaDevice::used_bytes: what these have charged.
  formats::QuotaDomain domain;
  // By place in domain.processes: its pid is of another pid namespace and names another process here.
  std::vector<bool> elsewhere;
  size_t dead =
      0;  // slots of processes that are gone; any guard sweeps them when it needs the room
};

struct SkippedDomain {
  std::string path;
  std::string why;  // one line, English (data/messages/errors.toml)
};

// A launch that waits for a GPU or was started on one (`cufit run --wait`), as its ticket says.
struct QueuedJob {
  bool started = false;
  uint32_t user = 0;    // uid
  uint32_t pid = 0;     // 0: of another pid namespace
  std::string program;  // empty: not told
  std::string share;    // of --share
  uint32_t count = 1;   // cards that it needs
  bool whole = false;   // that nobody else uses
  struct Card {
    std::string uuid;
    uint64_t bytes = 0;  // needed there; of a started one: kept for it
  };
  std::vector<Card> cards;  // any of them; of a started one: those that it has
  uint64_t seconds = 0;     // since it came
};

struct QuotaDomains {
  std::vector<LiveDomain> domains;  // by path
  std::vector<SkippedDomain> skipped;
};

}  // namespace cufit::facts
