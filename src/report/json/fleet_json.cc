// SPDX-License-Identifier: Apache-2.0
#include "report/fleet.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

Json to_json(const resolve::FleetNode& node) {
  Json out;
  out["name"] = node.name;
  out["verdict"] = node.verdict;
  out["action"] = node.action;
  out["fingerprint"] = node.fingerprint.id;
  out["cufit"] = node.cufit;
  out["findings"] = Json::array();
  for (const resolve::NodeFinding& one : node.findings)
    out["findings"].push_back({{"id", one.id},
                               {"severity", one.severity},
                               {"subject", one.subject},
                               {"summary", one.summary},
                               {"command", one.command}});
  return out;
}

Json to_json(const resolve::NodeGroup& group) {
  Json out;
  out["fingerprint"] = group.fingerprint.id;
  out["nodes"] = group.nodes;
  out["differs"] = Json::array();
  for (const resolve::NodeDifference& one : group.differs)
    out["differs"].push_back(
        {{"what", one.what}, {"value", one.value}, {"majority", one.majority}});
  out["parts"] = Json::object();
  for (const resolve::FingerprintPart& part : group.fingerprint.parts)
    out["parts"][part.what] = part.value;
  return out;
}

Json to_json(const std::vector<resolve::UnreachableNode>& nodes) {
  Json out = Json::array();
  for (const resolve::UnreachableNode& one : nodes)
    out.push_back({{"name", one.name}, {"why", one.why}});
  return out;
}

}  // namespace

std::string fleet_json(const FleetView& view) {
  Json out;
  out["schema"] = "cufit.fleet/1";
  out["nodes"] = Json::array();
  for (const resolve::FleetNode& node : view.nodes) out["nodes"].push_back(to_json(node));
  out["groups"] = Json::array();
  for (const resolve::NodeGroup& group : view.comparison.groups)
    out["groups"].push_back(to_json(group));
  out["unreachable"] = to_json(view.unreachable);
  if (!view.classes.empty()) {
    out["classes"] = Json::array();
    for (const FleetClass& one : view.classes)
      out["classes"].push_back({{"class", one.name}, {"nodes", one.nodes}});
    out["without_class"] = to_json(view.without_class);
  }
  if (!view.jobs.empty()) out["jobs"] = job_nodes_json(view.jobs, view.knowledge);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
