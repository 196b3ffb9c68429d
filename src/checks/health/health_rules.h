// SPDX-License-Identifier: Apache-2.0
// What a site asks of a node: the table [health] of cufit.toml. Everything absent is as in
// data/health.toml, whose rules have the names below.
//
//   [health]
//   gpus = 8                        # GPUs that answer
//   driver = ">=580.65,<590"        # PEP 440 specifiers, all must hold; or a list of versions
//   xid = [48, 79, 119]             # numbers that make a GPU not usable, in place of cufit's own
//   xid_warning = [63, 94]          # numbers that are told
//   ecc = true
//   mig = "off"                     # or the instances of each GPU: ["3g.40gb", "3g.40gb"]
//   link_width = 16                 # lanes at least
//   nvlinks = 18                    # links up at least
//   persistence = true
//   clock_mhz = 1980                # the SMs' highest clock at least
//   cdi = true                      # a CDI spec of the driver that runs
//   shm_free = "8 GiB"
//   memlock = "unlimited"           # or a size
//   errors = ["link_width"]         # rules that make the node not usable
//   warnings = ["cdi"]              # rules that are only told
//   off = ["throttle"]              # rules that are not asked
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

struct HealthRules {
  std::string file;  // for messages; empty = no file
  std::optional<uint32_t> gpus;
  std::vector<std::string> driver;
  std::optional<std::vector<uint32_t>> xid, xid_warning;
  std::optional<bool> ecc, persistence, cdi;
  std::optional<std::vector<std::string>> mig;  // the largest first; empty = off
  std::optional<uint32_t> link_width, nvlinks, clock_mhz;
  std::optional<uint64_t> shm_free_bytes, memlock_bytes;  // memlock: UINT64_MAX = unlimited
  std::vector<std::string> errors, warnings, off;         // ids of rules
};

// The text of a cufit.toml; other tables are left to others, and a file without [health] asks for
// nothing of its own. Error{malformed} with file and line: an unknown key or rule, a wrong type.
Result<HealthRules> parse_health_rules(std::string_view text, const std::string& file,
                                       const knowledge::Knowledge& knowledge);

// unknown: what is found keeps anybody from telling.
enum class HealthLevel { off, warning, unknown, error };
// How much a rule counts. `asked`: the file gives a value for it (rules of level "asked" count only
// then).
HealthLevel level_of(const HealthRules& rules, const knowledge::HealthRule& rule);
bool asks_for(const HealthRules& rules, std::string_view rule);

}  // namespace cufit::checks
