// SPDX-License-Identifier: Apache-2.0
// Who may start on which cards (`cufit run --wait`, `--gpus`): first come, first served among launches that want the same
// cards, and what a started job has not touched yet is kept for it. Pure: the machine is asked by host/quota/wait_tickets.h
// and host/driver/nvml_room.h, for every launch decides for itself; there is no daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cufit::resolve {

// A GPU or a MIG instance as NVML says it.
struct RoomOfCard {
  std::string uuid;
  uint64_t total_bytes = 0;            // 0: not told
  std::optional<uint64_t> free_bytes;  // nullopt: not told
  size_t processes = 0;                // that compute
  bool idle = false;                   // nobody computes, and nothing is held but for a display
  bool exclusive = false;              // one process at a time (compute mode)
  bool usable = true;                  // false: computing is prohibited, or the card is lost
};

struct QueuedCard {
  std::string uuid;
  uint64_t bytes = 0;       // needed there; of a started job: kept for it
  uint64_t used_bytes = 0;  // of a started job: what its processes hold already
};

struct QueuedLaunch {
  uint64_t number = 0;  // the order of arrival
  bool started = false;
  bool stopped = false;  // its process is stopped: it could not start, and nobody waits for it
  // Launches of one --share of one user have one quota together, and one that a started job makes has that job's place;
  // empty: this one alone.
  std::string group;
  size_t count = 1;               // of cards
  bool whole = false;             // cards that nobody else uses
  std::vector<QueuedCard> cards;  // any of them; of a started job: those that it has
};

enum class WaitFor {
  nothing,  // starts
  turn,     // others came first
  room,     // too few cards have the memory, or are free of others' programs
  never     // no such cards are here: more are wanted than there are, or more memory than they have
};

struct WaitDecision {
  WaitFor wait_for = WaitFor::nothing;
  std::vector<size_t> cards;  // places in the room's cards, in their order: where to start
  size_t before = 0;          // launches that came earlier and want a card that this one could use
  size_t fitting = 0;         // cards that would do now
  // The one with the most for this launch now, and how much that is; nullopt: no card is told of.
  std::optional<size_t> best;
  uint64_t best_bytes = 0;
  uint64_t earlier_bytes = 0;  // that the first of those before needs on a card that both could use
  bool earlier_whole = false;  // it needs cards that nobody else uses
  uint64_t kept_bytes = 0;     // there, for jobs that have not touched it yet
};

// `queue` may hold `mine` itself: it is known by its number.
WaitDecision decide_start(const std::vector<RoomOfCard>& room,
                          const std::vector<QueuedLaunch>& queue, const QueuedLaunch& mine);

}  // namespace cufit::resolve
