// SPDX-License-Identifier: Apache-2.0
// Samples of this machine with the owners of processes: what `cufit top`, `exporter` and `watch` look at.
#pragma once

#include <map>
#include <string>

#include "commands/context.h"
#include "facts/gpu_sample.h"
#include "host/driver/gpu_sampler.h"
#include "host/process/owner_names.h"
#include "host/process/pod_resources.h"
#include "watch/pod_names.h"

namespace cufit::commands {

class LiveSamples {
 public:
  LiveSamples(const Context& context, double interval_seconds);

  // Waits for a sample, at most so long; true: newest() is another one than before, or became stale.
  bool wait(double seconds);
  const facts::GpuSample& newest() const { return newest_; }
  bool has_answered() const { return sampler_.has_answered(); }
  std::string call() const { return sampler_.call(); }
  int descriptor() const { return sampler_.descriptor(); }

 private:
  void read_missed_xids();
  void name_pods();

  const host::Host& machine_;
  host::GpuSampler sampler_;
  host::OwnerNames names_;
  host::PodResourcesClient kubelet_;
  watch::PodNames pod_names_;
  uint64_t pod_answer_ = 0;  // number of that which pod_names_ has
  facts::GpuSample newest_;
  // Of the kernel's log, beyond what the sampler counted.
  std::map<std::pair<std::string, uint32_t>, uint64_t> missed_xids_;
  bool asks_log_ = true;  // at the next answer: after the first one, and after a child that hung
  std::string no_log_;    // why there is none
};

}  // namespace cufit::commands
