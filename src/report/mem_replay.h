// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit mem replay` and its two views.
#pragma once

#include <string>
#include <vector>

#include "memory/analysis/steps.h"
#include "memory/replay/what_if.h"
#include "report/report.h"

namespace cufit::report {

struct MemReplayView {
  const std::string& file;
  const memory::VerifiedRecording& verified;
  const std::vector<memory::Answer>& answers;
  const analysis::Steps& steps;  // of the recorded run; not looked for where nothing died
  const std::string& card;       // empty without --gpu
  bool device_named = false;     // by the user
  bool card_measured = false;    // its capacity is known from reports, not from its nominal size
  const knowledge::Knowledge& knowledge;
};

std::string mem_replay_text(const MemReplayView& view, const Style& style);
std::string mem_replay_json(const MemReplayView& view);  // schema cufit.mem.replay/1

}  // namespace cufit::report
