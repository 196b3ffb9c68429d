// SPDX-License-Identifier: Apache-2.0
// What the numbers of an out-of-memory message decide: clues with the names of
// data/clues/computed.toml. Pure arithmetic on what the message says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/oom_message.h"

namespace cufit::explain {

struct ComputedClue {
  std::string id;
  uint64_t line = 0;
  std::string fact;  // the arithmetic: "total 23.7 GiB - free 4.2 GiB - own 8.0 GiB = 11.5 GiB"
};

// Of the message that says most; its numbers decide, later messages are often its echo.
std::optional<formats::OomMessage> main_message(std::span<const formats::OomMessage> messages);

std::vector<ComputedClue> oom_clues(const formats::OomMessage& message);

}  // namespace cufit::explain
