// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit fleet check`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "fit/pack/fleet_jobs.h"
#include "report/report.h"
#include "resolve/fleet/fleet.h"

namespace cufit::report {

struct FleetClass {  // of a lock: the nodes that would run it
  std::string name;
  std::vector<std::string> nodes;
};

struct FleetView {
  const std::vector<resolve::FleetNode>& nodes;
  const std::vector<resolve::UnreachableNode>& unreachable;
  const resolve::FleetComparison& comparison;
  std::vector<FleetClass> classes;
  std::vector<resolve::UnreachableNode> without_class;  // none of the lock's serves them, and why
  bool has_baseline = false;
  const knowledge::Knowledge& knowledge;
  std::vector<pack::JobNodes> jobs = {};  // of --job
};

std::string fleet_text(const FleetView& view, const Style& style);  // terminal/fleet_text.cc
std::string fleet_json(const FleetView& view);                      // schema cufit.fleet/1
std::string fleet_html(const FleetView& view, const Style& style);  // html/fleet_page.cc

// What such nodes lack: "needs 61.5 GiB, NVIDIA L40S has 44.5 GiB".
std::string cannot_text(const pack::JobCannot& cannot, std::string_view lang,
                        const knowledge::Knowledge& knowledge);
// "jobs" of cufit.fleet/1.
Json job_nodes_json(const std::vector<pack::JobNodes>& jobs, const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
