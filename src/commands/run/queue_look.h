// SPDX-License-Identifier: Apache-2.0
// What a waiting launch saw last: the cards, and what the jobs that were started from the queue use of what is kept for them.
// A part of run_wait.cc.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "commands/context.h"
#include "facts/facts.h"
#include "formats/system/quota_domain.h"
#include "host/quota/wait_tickets.h"
#include "resolve/quota/wait_queue.h"

namespace cufit::commands {

// Launches of one --share of one user.
std::string group_of(uint32_t user, const std::string& share);

class QueueLook {
 public:
  std::vector<facts::NvmlGpu> now;        // by the launch's own cards
  std::vector<resolve::RoomOfCard> room;  // the same

  // What NVML told of these cards; `totals`: CUDA's.
  void take(const facts::NvmlFacts& told, const std::vector<facts::NvmlGpu>& cards,
            const std::vector<uint64_t>& totals);
  // What started jobs use by their quotas' files. Read before the driver is asked and again after it, and the less counts: a
  // job that takes memory in between is not thought to have less still to take than it has.
  enum class Usage { before, after };
  void read_usage(const Context& context, const host::WaitQueue& queue, Usage when);
  void read_share(const Context& context, const std::string& share);
  // All of it anew. Error: NVML gave no answer; what was seen before stays.
  Result<void> renew(const Context& context, const host::WaitQueue& queue,
                     const std::vector<facts::NvmlGpu>& cards, const std::vector<uint64_t>& totals);

  std::vector<resolve::QueuedLaunch> launches(const host::QueueReading& reading) const;
  // Where its --share is in use: the cards that quota limits, with its limit and what is used of it. Where a job of the queue makes
  // this launch (a script that waits for a card, and each of its steps again): that job's place is its own, or they would
  // wait for each other.
  resolve::QueuedLaunch joined(resolve::QueuedLaunch mine) const;
  bool is_new_damage(const std::string& file) { return damaged_.insert(file).second; }

 private:
  using UsedOn = std::map<std::string, uint64_t>;  // bytes by the card's UUID
  void add_listed(const host::QueueReading& reading);
  uint64_t used_by(const host::LiveTicket& live, const std::string& uuid) const;
  std::string group_of_ticket(const host::LiveTicket& live) const;

  std::map<std::string, UsedOn> by_quota_, by_nvml_;  // by the ticket's file
  host::QueueReading reading_;                        // of the last read_usage()
  std::optional<formats::QuotaDomain> share_;
  uint32_t outer_ = 0;  // the process of the queue that this one comes from; 0 = none
  std::set<std::string> damaged_;
};

}  // namespace cufit::commands
