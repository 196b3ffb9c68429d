// SPDX-License-Identifier: Apache-2.0
// What comes of the traced variants of a program: plans that train the same in less memory
// (fit/plans.h), for the cards that were asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/answer/cards.h"
#include "fit/answer/traces.h"
#include "fit/plans.h"

namespace cufit::fit {

struct PlansAnswer {
  std::vector<PlanProgram> programs;  // the first as it is
  Plans plans;                        // of these; none: warnings say why
  std::vector<std::string> cards;     // that were asked for, by PlanOnCard::card
  std::vector<uint64_t> usable;       // of each
  std::string speed_card;             // whose figures the times are reckoned with
  bool speed_known = false;           // it is the card that was asked for
  uint64_t network_gbits = 0;         // Gb/s of each GPU between nodes
  bool nvlink = false;                // over which its collectives are reckoned, else PCIe
  double node_rate = 0;               // bytes per second of each rank within its node
  std::optional<MeasuredLinks> measured;  // whose rate that is; nullopt: that of the tables
  uint64_t world = 1;                 // ranks
};

struct PlansAsked {
  uint64_t batch = 0;         // 0: not known
  bool extrapolates = false;  // other batch sizes than those traced can be answered
  Setup setup;                // without a bound, of no card
  Card traced_card;
  std::vector<Card> cards;
  std::optional<MeasuredLinks> links;  // nullopt: the rates of the tables
};

// Takes `whole` and `variants` of the traces and adds warnings to them.
PlansAnswer plans_answer(Traces& traces, const PlansAsked& asked,
                         const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
