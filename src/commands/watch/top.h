// SPDX-License-Identifier: Apache-2.0
// `cufit top`: what each GPU does, who uses it, whose memory grows and when the card is full.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "commands/command.h"
#include "report/top.h"

namespace cufit::commands {

struct TopRequest {
  bool once = false, json = false, demo = false;
  std::optional<std::string> interval, samples, filter, from, record;
  report::TopSort sort = report::TopSort::memory;
};

std::span<const Option> top_options();
// Exit code 1: no GPU could be asked.
int run_top(const Context& context, const TopRequest& request);

}  // namespace cufit::commands
