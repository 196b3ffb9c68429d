// SPDX-License-Identifier: Apache-2.0
// What trials of a quota prove (`cufit quota verify`): which ways to memory are tried, with how much, and what an answer of
// the probe means. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/quota_trial.h"

namespace cufit::resolve {

// One way to memory by one route to the driver; ids of the messages "quota.way.*".
struct TrialWay {
  std::string way;    // of guard/probe/probe.c, or "torch"
  std::string route;  // dlsym, gpa, the name of a runtime; torch: its allocator settings
};
// All that the probe can try; torch's come beside them where an environment has it.
std::vector<TrialWay> trial_ways();
std::vector<TrialWay> torch_ways();

// `room_bytes`: what of the limit nobody holds now; below it a quarter of that is asked.
facts::TrialSizes trial_sizes(uint64_t limit_bytes, uint64_t room_bytes);
// Smaller ones leave no room for a context, larger ones are not for a trial.
constexpr uint64_t k_least_trial_limit = uint64_t{1} << 30;

// holds: granted below, refused above with out-of-memory, by the quota. unproved: refused above, but not by the quota
// (a full card refuses too). leaks: granted above. blocks: refused below by the quota. no_room: refused below
// by the card. missing: this driver or machine has no such way. failed: it came to nothing.
enum class Proof { holds, unproved, leaks, blocks, no_room, missing, failed };
Proof judge(const facts::TrialAnswer& answer);
const char* to_string(Proof proof);

struct Trial {
  uint32_t gpu = 0;  // CUDA's number
  TrialWay way;
  facts::TrialAnswer answer;
  Proof proof = Proof::failed;
};

// Every way that was tried holds, and one was at least.
bool all_hold(const std::vector<Trial>& trials);

}  // namespace cufit::resolve
