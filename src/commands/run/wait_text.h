// SPDX-License-Identifier: Apache-2.0
// What a waiting launch says: what it needs, and what there is. A part of run_wait.cc.
#pragma once

#include <string>
#include <vector>

#include "commands/context.h"
#include "facts/facts.h"
#include "resolve/quota/wait_queue.h"

namespace cufit::commands {

struct WaitView {
  const Context& context;
  const std::vector<facts::NvmlGpu>& now;        // its cards
  const std::vector<resolve::RoomOfCard>& room;  // the same
  size_t count = 1;                              // of cards that it needs
  std::string size;                              // on each; empty: whole cards
  uint64_t bytes = 0;                            // the same; 0: differs from card to card
};

std::string card_text(const Context& context, const facts::NvmlGpu& card);
// `beside`: what is free is said with it, in MiB where both would read the same.
std::string need_text(const WaitView& view, const resolve::WaitDecision* beside = nullptr);
std::string free_text(const WaitView& view, const resolve::WaitDecision& decision);

}  // namespace cufit::commands
