// SPDX-License-Identifier: Apache-2.0
// The quota domain of a launch: what its file is to say. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/system/quota_domain.h"
#include "resolve/quota/vram_size.h"

namespace cufit::commands {

struct DomainWish {
  std::string share;                      // empty: of this launch alone
  std::vector<resolve::QuotaCard> cards;  // by the process's own numbers
  std::vector<uint64_t> limits;           // of each; UINT64_MAX = none
  uint64_t every_bytes = UINT64_MAX;      // of a GPU that is not seen now
  bool nvml_own_process = false;          // NVML says what a process itself holds
  uint64_t least_context_bytes = 0;
};
formats::QuotaDomain domain_of(const DomainWish& wish);

// What a shared domain that is in use says of the card.
uint64_t limit_in(const formats::QuotaDomain& domain, const resolve::QuotaCard& card);

// Of --share: a part of a file's name.
bool is_share_name(const std::string& name);

}  // namespace cufit::commands
