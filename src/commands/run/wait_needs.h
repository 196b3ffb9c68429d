// SPDX-License-Identifier: Apache-2.0
// What a launch waits for: its words, the cards that it may use, and what it needs of each. A part of run_wait.cc; all that
// can never be is said here, before anything is waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "commands/run/queue_look.h"
#include "commands/run/run_wait.h"
#include "commands/run/wait_text.h"
#include "resolve/quota/vram_size.h"
#include "resolve/quota/wait_queue.h"

namespace cufit::commands {

struct WaitNeeds {
  resolve::VramRequest request;     // of --vram
  std::string size;                 // of it, to be shown; empty: whole cards
  uint64_t bytes = 0;               // the same; 0: differs from card to card
  std::optional<uint64_t> timeout;  // seconds
  std::vector<facts::NvmlGpu> cards;
  std::vector<uint64_t> totals;  // CUDA's; 0 = not told
  resolve::QueuedLaunch mine;
  bool unsuited = false;  // there are cards, and the program could start on none of them
};

// In this order. Errors are messages in the user's language.
Result<void> read_wait_words(const Context& context, const WaitOptions& options, WaitNeeds& needs);
Result<void> find_wait_cards(const Context& context, const WaitOptions& options, WaitNeeds& needs,
                             QueueLook& look);
Result<void> find_wait_needs(const Context& context, const WaitOptions& options, WaitNeeds& needs,
                             const QueueLook& look);

WaitView view_of_wait(const Context& context, const WaitNeeds& needs, const QueueLook& look);

}  // namespace cufit::commands
