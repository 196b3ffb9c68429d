// SPDX-License-Identifier: Apache-2.0
// Schema cufit.fleet.plan/1. Members may be added within the schema's version, none is renamed or
// removed.
#include "report/fleet.h"
#include "report/fleet_plan.h"
#include "report/json/json_value.h"
#include "report/pack.h"

namespace cufit::report {
namespace {

const char* engine_name(pack::Engine engine) {
  return engine == pack::Engine::ssh     ? "ssh"
         : engine == pack::Engine::slurm ? "slurm"
                                         : "kubernetes";
}

Json job_json(const FleetPlanView& view, const pack::FleetPlaced& placed) {
  const pack::Machine& machine = view.question.machines[placed.machine];
  const size_t first = view.plan.first_gpu[placed.machine];
  const FleetAsk ask = ask_for(view, placed, "COMMAND");
  Json out;
  out["name"] = view.question.jobs[placed.job].name;
  out["node"] = machine.name;
  out["gpus"] = Json::array();
  for (size_t i = 0; i < placed.gpus.size(); ++i)
    out["gpus"].push_back(
        {{"name", view.plan.parts.gpus[first + placed.gpus[i]].name},
         {"visible", view.plan.parts.gpus[first + placed.gpus[i]].visible},
         {"bytes", placed.on[i].bytes},
         {"context_bytes", placed.on[i].context},
         {"profile",
          placed.on[i].instance ? Json(placed.on[i].instance->profile->name) : Json(nullptr)},
         {"start", placed.on[i].instance ? Json(placed.on[i].instance->start) : Json(nullptr)}});
  out["bytes"] = placed.bytes;
  out["command_known"] = !view.question.jobs[placed.job].command.empty();
  out["ask"] = ask.lines;
  out["gres"] = or_null(ask.gres);
  out["limits"] = Json::object();
  if (!ask.limit.empty()) out["limits"][ask.limit] = ask.count;
  return out;
}

Json node_json(const FleetPlanView& view, size_t machine) {
  const size_t first = view.plan.first_gpu[machine];
  Json gpus = Json::array();
  for (size_t i = 0; i < view.question.machines[machine].gpus.size(); ++i) {
    const pack::PackedGpu& packed = view.plan.plan.gpus[first + i];
    const pack::Gpu& asked = view.plan.parts.gpus[first + i];
    gpus.push_back({{"name", asked.name},
                    {"usable_bytes", packed.usable},
                    {"in_use_bytes", asked.in_use},
                    {"left_bytes", packed.left},
                    {"jobs", packed.jobs.size()},
                    {"mig_commands", mig_commands(packed, asked.index)}});
  }
  Json out;
  out["name"] = view.question.machines[machine].name;
  out["given_away"] = view.question.machines[machine].given_away;
  out["gpus"] = std::move(gpus);
  return out;
}

}  // namespace

std::string fleet_plan_json(const FleetPlanView& view) {
  const pack::FleetPlan& plan = view.plan;
  Json out;
  out["schema"] = "cufit.fleet.plan/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, view.knowledge);
  out["engine"] = engine_name(view.engine);
  out["goal"] = plan.goal == pack::Goal::fewest ? "fewest" : "headroom";
  out["jobs"] = Json::array();
  for (const pack::FleetPlaced& placed : plan.placed) out["jobs"].push_back(job_json(view, placed));
  out["unplaced"] = job_nodes_json(view.unplaced, view.knowledge);
  out["nodes"] = Json::array();
  for (size_t machine = 0; machine < view.question.machines.size(); ++machine)
    out["nodes"].push_back(node_json(view, machine));
  out["without_jobs"] = Json::array();
  for (const pack::MachineOut& one : view.out)
    out["without_jobs"].push_back({{"name", one.name}, {"as", one.as}, {"why", one.why}});
  out["optimal"] = plan.optimal;
  out["placed"] = plan.placed.size();
  out["most_placed"] = plan.most_placed;
  out["used"] = plan.used;
  const bool fewest = plan.goal == pack::Goal::fewest;
  out["fewest_used"] = fewest ? Json(plan.fewest_used) : Json(nullptr);
  out["headroom_bytes"] = fewest ? Json(nullptr) : Json(plan.headroom);
  out["most_headroom_bytes"] = fewest ? Json(nullptr) : Json(plan.most_headroom);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
