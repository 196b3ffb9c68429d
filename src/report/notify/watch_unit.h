// SPDX-License-Identifier: Apache-2.0
// A systemd unit that runs `cufit watch`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "knowledge/knowledge.h"

namespace cufit::report {

struct WatchUnit {
  std::vector<std::string> command;  // words; the first is the program's absolute path
  bool reads_variables = false;      // an address is in a variable
  bool runs_programs = false;        // of the user, which may write files
};

std::string watch_unit(const WatchUnit& unit, std::string_view lang,
                       const knowledge::Knowledge& knowledge);

// A word of ExecStart=: quoted where it has to be; systemd would fill in `%` and `$`.
std::string systemd_word(std::string_view word);

}  // namespace cufit::report
