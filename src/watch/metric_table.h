// SPDX-License-Identifier: Apache-2.0
// Metrics while they are gathered: by name, with the labels that data/metrics.toml lists. Inside of watch/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watch/metrics.h"

namespace cufit::watch {

using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

class MetricTable {
 public:
  explicit MetricTable(const knowledge::Knowledge& knowledge);

  // Nothing where there is no value. Labels without a value are left out. A name that metrics.toml lacks is left out as well;
  // the tests ask for all of them.
  void add(std::string_view name, MetricLabels labels, std::optional<double> value);
  std::vector<MetricFamily> take();

 private:
  std::vector<MetricFamily> families_;  // in the order of metrics.toml
};

template <class T>
std::optional<double> as_number(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

void add_gpu_metrics(const WatchedMachine& machine, MetricTable& table,
                     const knowledge::Knowledge& knowledge);
void add_process_metrics(const WatchedMachine& machine, const MachineState& state,
                         const MetricLimits& limits, MetricTable& table);

}  // namespace cufit::watch
