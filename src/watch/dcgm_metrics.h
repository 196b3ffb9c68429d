// SPDX-License-Identifier: Apache-2.0
// The same machine in the names, units and labels of NVIDIA's dcgm-exporter (data/dcgm_metrics.toml),
// so that boards and alerts made for it work. Pure; `cufit exporter --dcgm-names` prints them beside
// its own.
#pragma once

#include <string_view>
#include <vector>

#include "knowledge/knowledge.h"
#include "watch/metrics.h"

namespace cufit::watch {

// In the order of dcgm_metrics.toml. `host`: this machine's name, empty: no such label. A value that is
// not known is a series that is not there; an instance whose number NVML does not tell has no series,
// as DCGM's labels would not tell it from its neighbours.
//
// A divided GPU and its instances are different series: memory is the instances', heat, power and
// clocks are the GPU's. (dcgm-exporter repeats the latter for each instance.)
std::vector<MetricFamily> dcgm_metrics(const WatchedMachine& machine, std::string_view host,
                                       const knowledge::Knowledge& knowledge);

}  // namespace cufit::watch
