// SPDX-License-Identifier: Apache-2.0
// What the ranks of a training step send each other, and how long that takes. Rings: of an
// all-gather or reduce-scatter of B bytes over n ranks each sends (n - 1) / n x B, of an all-reduce
// twice that. FSDP's gathering and the reduction of gradients run beside the arithmetic; what tensor
// parallelism sums does not. Good for comparing plans. Used by plans.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fit/step_program.h"
#include "fit/step_time.h"

namespace cufit::fit {

// Bytes per second that a rank gets, in one direction.
struct LinkSpeed {
  double node = 0;       // to the others of its node: NVLink, else PCIe
  double network = 0;    // to other nodes
  double host = 0;       // to the processor's memory
  double processor = 0;  // an optimizer's traffic on the processor, for each GPU
  bool nvlink = false;
  double network_gbits = 0;  // of one GPU, as its link is named: Gb/s
};

// What a sum over all GPUs of a machine was measured to carry (`cufit doctor --deep`).
struct MeasuredLinks {
  double bytes_per_second = 0;  // of each rank in one direction, as a ring counts them
  uint64_t gpus = 0;
  std::string gpu;   // their name; empty: not told
  std::string file;  // where it was read, as typed
};

// Of the card's row in data/links.toml, else of its generation of PCIe.
LinkSpeed link_speed(std::string_view card, std::string_view cc,
                     const knowledge::Knowledge& knowledge);

// How a traced program is dealt out.
struct Dealing {
  std::string kind;      // "ddp", "zero1", "fsdp", "hsdp", "tp"; empty: it sends nothing
  uint64_t world = 1;    // ranks
  uint64_t node = 1;     // of them on each node
  uint64_t degree = 1;   // ranks of a group of hsdp and tp
  bool offload = false;  // shards and the optimizer are the processor's
  uint64_t weights = 0;  // bytes of all parameters
  uint64_t trained = 0;  // the same of those that are trained: of their gradients

  // Batches that are worked on at once, of each of them.
  uint64_t batches() const { return kind == "tp" ? world / degree : world; }
};

// By its switches ("fsdp:no-reshard", "tp:2") and the facts of its trace.
Dealing dealing_of(const std::vector<std::string>& switches, const StepProgram& program);

struct Traffic {
  double bytes = 0, seconds = 0;
  void add(double more, double rate) {
    bytes += more;
    if (rate > 0) seconds += more / rate;
  }
};

// Of one rank.
struct StepTraffic {
  Traffic pass;     // of each micro-batch, beside its arithmetic
  Traffic last;     // beside that of the last micro-batch
  Traffic exposed;  // of each micro-batch, nothing runs beside it
  Traffic after;    // once a step, nothing runs beside it
  double bytes(uint64_t accumulation) const;
};

StepTraffic step_traffic(const StepProgram& program, uint64_t batch, const Dealing& dealing,
                         const LinkSpeed& speed);

// Arithmetic and traffic of a step.
double step_seconds(const StepTime& time, const StepTraffic& traffic, uint64_t accumulation);

}  // namespace cufit::fit
