// SPDX-License-Identifier: Apache-2.0
// The cards of a queue (wait_queue.h) from what NVML and CUDA say. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "resolve/quota/wait_queue.h"

namespace cufit::resolve {

// Of `told.gpus`, each GPU and MIG instance as an entry of its own (host/driver/nvml_room.h), those that a launch may use, in
// its own order: what CUDA shows under its CUDA_VISIBLE_DEVICES (`visible`; nullopt: not set). CUDA shows a process one MIG
// instance alone, so these are taken as the variable names them, all where it is not set.
std::vector<facts::NvmlGpu> usable_cards(const facts::NvmlFacts& told, const facts::CudaFacts& cuda,
                                         const std::optional<std::string>& visible);

// Cards of `told` (usable_cards() of the start) as they are now; one that NVML no longer tells of is not usable.
// `total`: CUDA's, where it said one. It is less than NVML's, and limits are shares of it.
RoomOfCard room_of_card(const facts::NvmlGpu& card, uint64_t total);

// Who holds most of a card's memory.
struct CardUser {
  std::string name;  // "python", of the path that the card's facts give; empty: NVML does not name it
  uint32_t pid = 0;
  std::optional<uint64_t> bytes;
};
std::optional<CardUser> main_user(const facts::NvmlGpu& card);

}  // namespace cufit::resolve
