// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/fleet_jobs.h"

#include <algorithm>
#include <set>

#include "commands/pack/pack_inputs.h"

namespace cufit::commands {

JobMachines job_machines(const NodeAnswers& nodes) {
  JobMachines out;
  for (const NodeAnswer& answer : nodes.answers) {
    const resolve::FleetNode& node = answer.node;
    if (node.verdict == "works" || node.verdict == "limited") {
      out.machines.push_back({node.name, answer.gpus, 0, {}, 0, {}});
      continue;
    }
    const std::string why =
        node.findings.empty() ? node.action : node.action + ": " + node.findings.front().id;
    out.out.push_back({node.name, node.verdict == "broken" ? "broken" : "unknown", why});
  }
  for (const resolve::UnreachableNode& one : nodes.unreachable)
    out.out.push_back({one.name, "silent", one.why});
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::stable_sort(out.machines.begin(), out.machines.end(), by_name);
  std::stable_sort(out.out.begin(), out.out.end(), by_name);
  return out;
}

Result<std::vector<pack::Job>> fleet_jobs(const Context& context,
                                          const std::vector<std::string>& inputs,
                                          const std::vector<pack::Machine>& machines) {
  std::vector<pack::Gpu> models;
  std::set<std::string> known;
  for (const pack::Machine& machine : machines)
    for (const pack::Gpu& gpu : machine.gpus)
      if (!gpu.table.empty() && known.insert(gpu.table).second) models.push_back(gpu);
  return pack_jobs(context, inputs, models, pack::k_most_fleet_jobs);
}

Result<std::vector<pack::JobNodes>> nodes_for_jobs(const Context& context,
                                                   const std::vector<std::string>& inputs,
                                                   const NodeAnswers& nodes) {
  std::vector<pack::JobNodes> out;
  if (inputs.empty()) return out;
  const JobMachines machines = job_machines(nodes);
  CUFIT_TRY(jobs, fleet_jobs(context, inputs, machines.machines));
  for (const pack::Job& job : jobs)
    out.push_back(pack::nodes_for_job(job, machines.machines, machines.out));
  return out;
}

}  // namespace cufit::commands
