// SPDX-License-Identifier: Apache-2.0
// How long a training step takes on a card, reckoned from what a trace made for plans tells of its
// second step: shapes of what multiplies, bytes that the other operators move, kernels. Each kernel
// takes the longer of its arithmetic and its traffic; a pass never less than its launches. Good for
// ratios between programs of one kind, not for seconds. Used by plans.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fit/step_program.h"
#include "knowledge/knowledge.h"

namespace cufit::fit {

// What a program gets of a card, not its peaks.
struct CardSpeed {
  std::string
      card;  // whose figures these are; another one where the table lacks the card asked for
  double half = 0, tf32 = 0, fp32 = 0;  // operations per second
  double convolution = 1;               // of these, what a convolution gets
  double bytes = 0;                     // per second
  double kernel = 0, launch = 0;        // seconds, at least
};

// Of the row of this card (knowledge::Gpu::name), else of one of its compute capability, else of an
// H100.
CardSpeed card_speed(std::string_view card, std::string_view cc,
                     const knowledge::Knowledge& knowledge);

struct StepTime {
  double pass = 0;       // seconds of forward and backward of one micro-batch
  double optimizer = 0;  // seconds, once a step
};

// nullopt: no trace for plans, or a batch size that it does not answer for.
std::optional<StepTime> step_time(const StepProgram& program, uint64_t batch,
                                  const CardSpeed& speed);

// How many micro-batches a step of the program takes as it stands; at least 1.
uint64_t micro_batches(const StepProgram& program);

}  // namespace cufit::fit
