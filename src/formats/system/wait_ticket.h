// SPDX-License-Identifier: Apache-2.0
// The ticket of a launch in the queue of `cufit run --wait`: a file of lines, filled up with empty ones to k_ticket_bytes, so
// that a change of its state needs no new room on a full file system. Whoever may write to the folder may write anything.
//
//   cufit-wait 1
//   number 81500000000               # CLOCK_BOOTTIME in ns at the arrival: who came first is served first
//   state waiting                    # or started
//   pid 4711                         # of the launcher, which becomes the program
//   start 99887                      # field 22 of /proc/PID/stat
//   boot 0d1e2f...                   # /proc/sys/kernel/random/boot_id: whose pids these are
//   pid_namespace 4026531836
//   share team                       # of --share; the line is not there: none
//   domain /dev/shm/cufit-1000/...   # the quota's file, where there is one
//   count 1                          # how many of the cards it needs
//   whole 0                          # 1: cards that nobody else uses
//   card GPU-00000000-1111-... 10737418240   # one it could use, or has, and the bytes that it needs there
//   end
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

constexpr size_t k_ticket_bytes = 8192;
constexpr size_t k_most_ticket_cards = 64;

struct TicketCard {
  std::string uuid;
  uint64_t bytes = 0;
};

struct WaitTicket {
  uint64_t number = 0;
  bool started = false;
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  std::string boot;
  uint64_t pid_namespace = 0;
  std::string share, domain;
  uint32_t count = 1;
  bool whole = false;
  std::vector<TicketCard> cards;
};

// Error{malformed}: a text that has no place in it (a line break, more cards or letters than there is room for).
Result<std::string> make_wait_ticket(const WaitTicket& ticket);
// Error{malformed} names the line.
Result<WaitTicket> parse_wait_ticket(std::string_view text);

}  // namespace cufit::formats
