// SPDX-License-Identifier: Apache-2.0
// What is known of a machine as metrics: names, labels and numbers as data/metrics.toml lists them. Pure. `cufit exporter`
// prints them, `cufit watch` judges its rules by them: one truth for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facts/quota_domains.h"
#include "knowledge/knowledge.h"
#include "watch/watcher.h"

namespace cufit::watch {

// One number with its labels, in the order of metrics.toml; a label without a value is left out.
struct MetricPoint {
  std::vector<std::pair<std::string_view, std::string>> labels;
  double value = 0;

  std::string_view label(std::string_view name) const;  // empty: it has none
};

// All numbers of one metric; a metric without any is left out.
struct MetricFamily {
  const knowledge::MetricRow* metric = nullptr;
  std::vector<MetricPoint> points;
};

// What the samples do not say of the machine.
struct MachineState {
  facts::QuotaDomains quotas;
  std::optional<uint32_t> gpus_on_bus;         // absent where a container sees only some
  std::string kernel_driver, library_version;  // empty: not known
};

struct MetricLimits {
  // Process series that are kept, those with the most memory first: more would make a monitoring system slow.
  size_t processes = 512;
};

// `now`: seconds since the epoch, for the age of the sample. In the order of metrics.toml.
std::vector<MetricFamily> machine_metrics(const WatchedMachine& machine, const MachineState& state,
                                          double now, const MetricLimits& limits,
                                          const knowledge::Knowledge& knowledge);

}  // namespace cufit::watch
