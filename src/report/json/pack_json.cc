// SPDX-License-Identifier: Apache-2.0
// Schemas cufit.pack/1 and cufit.mig.plan/1. Members may be added within the schema's version, none
// is renamed or removed.
#include "report/json/json_value.h"
#include "report/pack.h"

namespace cufit::report {
namespace {

Json placed_json(const PackView& view, size_t gpu, const pack::PlacedJob& job) {
  const pack::Job& asked = view.question.jobs[job.job];
  Json out;
  out["name"] = asked.name;
  out["bytes"] = job.bytes;
  out["command"] = start_command(view, gpu, job, "COMMAND");
  out["command_known"] = !asked.command.empty();
  out["context_bytes"] = job.context;
  out["profile"] = job.instance ? Json(job.instance->profile->name) : Json(nullptr);
  out["start"] = job.instance ? Json(job.instance->start) : Json(nullptr);
  return out;
}

Json unplaced_json(const PackView& view) {
  Json out = Json::array();
  for (const pack::Unplaced& job : view.plan.unplaced)
    out.push_back({{"name", view.question.jobs[job.job].name},
                   {"bytes", job.bytes},
                   {"why", unplaced_text(view, job, "en")},
                   {"missing_bytes", job.missing}});
  return out;
}

Json waiting_json(const PackView& view) {
  Json out = unplaced_json(view);
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string command = waiting_command(view, view.plan.unplaced[i], "COMMAND");
    out[i]["command"] = command.empty() ? Json(nullptr) : Json(command);
  }
  return out;
}

Json instance_json(const MigView& view, const pack::PlacedJob& job) {
  const pack::MigProfile& profile = *job.instance->profile;
  Json out;
  out["name"] = view.question.jobs[job.job].name;
  out["bytes"] = job.bytes;
  out["context_bytes"] = job.context;
  out["profile"] = profile.name;
  out["profile_id"] = profile.id;
  out["start"] = job.instance->start;
  out["units"] = profile.units;
  out["slices"] = profile.slices;
  out["sm"] = profile.sm == 0 ? Json(nullptr) : Json(profile.sm);
  out["memory_bytes"] = uint64_t{profile.mib} << 20;
  out["unused_bytes"] = (uint64_t{profile.usable} << 20) - job.bytes;
  return out;
}

Json profile_json(const pack::MigProfile& profile) {
  Json out;
  out["name"] = profile.name;
  out["id"] = profile.id;
  out["slices"] = profile.slices;
  out["units"] = profile.units;
  out["starts"] = profile.starts;
  out["most"] = profile.most;
  out["memory_bytes"] = uint64_t{profile.mib} << 20;
  out["sm"] = profile.sm == 0 ? Json(nullptr) : Json(profile.sm);
  out["measured"] = profile.seen;
  return out;
}

}  // namespace

std::string pack_json(const PackView& view) {
  const pack::Plan& plan = view.plan;
  Json out;
  out["schema"] = "cufit.pack/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, view.knowledge);
  out["goal"] = plan.goal == pack::Goal::fewest ? "fewest" : "headroom";
  out["gpus"] = Json::array();
  for (size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    const pack::PackedGpu& packed = plan.gpus[gpu];
    const pack::Gpu& asked = view.question.gpus[gpu];
    Json jobs = Json::array();
    for (const pack::PlacedJob& job : packed.jobs) jobs.push_back(placed_json(view, gpu, job));
    Json one;
    one["name"] = asked.name;
    one["usable_bytes"] = packed.usable;
    one["jobs"] = std::move(jobs);
    one["left_bytes"] = packed.left;
    one["visible"] = asked.visible;
    one["time_sharing"] = !packed.divided && packed.jobs.size() > 1;
    one["divided"] = packed.divided.has_value();
    one["mig_commands"] = mig_commands(packed, asked.index);
    out["gpus"].push_back(std::move(one));
  }
  out["unplaced"] = waiting_json(view);
  out["optimal"] = plan.optimal;
  out["placed"] = view.question.jobs.size() - plan.unplaced.size();
  out["most_placed"] = plan.most_placed;
  out["used"] = plan.used;
  const bool fewest = plan.goal == pack::Goal::fewest;
  out["fewest_used"] = fewest ? Json(plan.fewest_used) : Json(nullptr);
  out["headroom_bytes"] = fewest ? Json(nullptr) : Json(plan.headroom);
  out["most_headroom_bytes"] = fewest ? Json(nullptr) : Json(plan.most_headroom);
  return out.dump(2) + "\n";
}

std::string mig_plan_json(const MigView& view) {
  const pack::PackedGpu& packed = view.plan.gpus[0];
  const PackView as_pack{view.question, view.plan, view.knowledge};
  const uint32_t index = view.question.gpus[0].index;
  Json out;
  out["schema"] = "cufit.mig.plan/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, view.knowledge);
  out["gpu"] = view.card.gpu;
  out["driver"] = view.card.driver;
  out["units"] = view.card.units;
  out["free_units"] = packed.divided ? packed.free_units : view.card.units;
  out["instances"] = Json::array();
  for (const pack::PlacedJob& job : packed.jobs)
    out["instances"].push_back(instance_json(view, job));
  out["unplaced"] = unplaced_json(as_pack);
  out["optimal"] = view.plan.optimal;
  out["commands"] = mig_commands(packed, index);
  out["undo"] = mig_undo_commands(index);
  out["profiles"] = Json::array();
  for (const pack::MigProfile& profile : view.card.profiles)
    out["profiles"].push_back(profile_json(profile));
  out["limits"] = Json::array();
  for (const knowledge::MigLimitRow& limit : view.knowledge.mig_limits)
    out["limits"].push_back(
        {{"id", std::string(limit.id)},
         {"text", label(view.knowledge, "en", "mig.limit." + std::string(limit.id))},
         {"source", std::string(limit.source)}});
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
