// SPDX-License-Identifier: Apache-2.0
// Schema cufit.quota/1. Members may be added within the schema's version, none is renamed or removed.
#include <algorithm>

#include "report/json/json_value.h"
#include "report/quota.h"

namespace cufit::report {
namespace {

Json device_usage_json(const resolve::DeviceUsage& device) {
  Json out;
  out["index"] = device.index ? Json(*device.index) : Json(nullptr);
  out["uuid"] = or_null(device.uuid);
  out["limit_bytes"] = or_null(device.limit_bytes);
  out["used_bytes"] = device.used_bytes;
  out["peak_bytes"] = device.peak_bytes;
  out["nvml_bytes"] = or_null(device.nvml_bytes);
  out["refusals"] = device.refusals;
  out["spilled_bytes"] = device.spilled_bytes;
  out["name"] = or_null(device.name);
  out["pci"] = or_null(device.pci);
  out["driver_refusals"] = device.driver_refusals;
  return out;
}

Json domain_usage_json(const resolve::DomainUsage& domain) {
  Json out;
  out["name"] = domain.name;
  out["devices"] = Json::array();
  for (const resolve::DeviceUsage& device : domain.devices)
    out["devices"].push_back(device_usage_json(device));
  out["processes"] = Json::array();
  for (const resolve::ProcessUsage& process : domain.processes)
    out["processes"].push_back({{"pid", process.pid},
                                {"name", process.name},
                                {"used_bytes", process.used_bytes},
                                {"used_bytes_by_device", process.by_device},
                                {"other_pid_namespace", process.elsewhere}});
  out["path"] = domain.path;
  out["user"] = domain.owner;
  out["dead_slots"] = domain.dead;
  out["foreign_library"] = or_null(domain.foreign);
  out["unknown_calls"] = domain.unknown;
  return out;
}

Json queued_job_json(const facts::QueuedJob& job, const QuotaStatusView& view) {
  Json out;
  out["user"] = job.user;
  out["pid"] = job.pid == 0 ? Json(nullptr) : Json(job.pid);
  out["program"] = or_null(job.program);
  out["share"] = job.share;
  out["gpus"] = job.count;
  out["whole"] = job.whole;
  out["cards"] = Json::array();
  for (const facts::QueuedJob::Card& card : job.cards) {
    const auto index = view.index_by_uuid.find(card.uuid);
    out["cards"].push_back(
        {{"index", index == view.index_by_uuid.end() ? Json(nullptr) : Json(index->second)},
         {"uuid", card.uuid},
         {"bytes", card.bytes}});
  }
  out["seconds"] = job.seconds;
  return out;
}

Json trial_json(const resolve::Trial& trial) {
  Json out;
  out["gpu"] = trial.gpu;
  out["way"] = trial.way.way;
  out["route"] = trial.way.route;
  out["proof"] = resolve::to_string(trial.proof);
  out["phase"] = trial.answer.phase;
  out["below_result"] = trial.answer.below < 0 ? Json(nullptr) : Json(trial.answer.below);
  out["above_result"] = trial.answer.above < 0 ? Json(nullptr) : Json(trial.answer.above);
  out["refusals"] = trial.answer.refusals;
  out["note"] = or_null(trial.answer.note);
  return out;
}

Json verified_gpu_json(const VerifiedGpu& gpu) {
  using Skipped = VerifiedGpu::Skipped;
  const bool tried = gpu.skipped == Skipped::no;
  Json out;
  out["gpu"] = gpu.number;
  out["name"] = or_null(gpu.name);
  out["uuid"] = or_null(gpu.uuid);
  out["limit_bytes"] = or_null(gpu.limit_bytes);
  out["below_bytes"] = tried ? Json(gpu.sizes.below) : Json(nullptr);
  out["above_bytes"] = tried ? Json(gpu.sizes.above) : Json(nullptr);
  out["skipped"] = tried                              ? Json(nullptr)
                   : gpu.skipped == Skipped::no_limit ? Json("no_limit")
                                                      : Json("no_room");
  return out;
}

// "backend" and "rejected": what `cufit run --vram` uses on the machine, and the others.
void put_backends(const std::vector<resolve::BackendVerdict>& verdicts,
                  const knowledge::Knowledge& knowledge, Json& out) {
  using State = resolve::BackendVerdict::State;
  const resolve::BackendVerdict* chosen = resolve::chosen_backend(verdicts);
  out["backend"] = chosen ? Json(resolve::to_string(chosen->backend)) : Json(nullptr);
  out["domains"] = Json::array();  // where a reader looks for them: before what is rejected
  out["waiting"] = Json::array();
  out["started"] = Json::array();
  out["rejected"] = Json::array();
  for (const resolve::BackendVerdict& verdict : verdicts) {
    if (verdict.state == State::starts) continue;
    Json one;
    one["backend"] = resolve::to_string(verdict.backend);
    one["why"] = quota_reason(verdict, "why", verdict.why, "en", knowledge);
    one["to_enable"] = or_null(quota_reason(verdict, "enable", verdict.to_enable, "en", knowledge));
    one["possible"] = verdict.state == State::possible;
    out["rejected"].push_back(std::move(one));
  }
}

}  // namespace

std::string quota_status_json(const QuotaStatusView& view) {
  Json out;
  out["schema"] = "cufit.quota/1";
  out["cufit"] = CUFIT_VERSION;
  put_backends(view.verdicts, view.knowledge, out);
  for (const resolve::DomainUsage& domain : view.domains)
    out["domains"].push_back(domain_usage_json(domain));
  for (const facts::QueuedJob& job : view.queue)
    out[job.started ? "started" : "waiting"].push_back(queued_job_json(job, view));
  out["skipped"] = Json::array();
  for (const facts::SkippedDomain& one : view.skipped)
    out["skipped"].push_back({{"path", one.path}, {"why", one.why}});
  return out.dump(2) + "\n";
}

std::string quota_plan_json(const QuotaPlanView& view) {
  Json out;
  out["schema"] = "cufit.quota/1";
  out["cufit"] = CUFIT_VERSION;
  put_backends(view.verdicts, view.knowledge, out);
  out["skipped"] = Json::array();
  return out.dump(2) + "\n";
}

std::string quota_verify_json(const QuotaVerifyView& view) {
  Json out;
  out["schema"] = "cufit.quota.verify/1";
  out["cufit"] = CUFIT_VERSION;
  out["holds"] = all_verified(view);
  out["gpus"] = Json::array();
  for (const VerifiedGpu& gpu : view.gpus) out["gpus"].push_back(verified_gpu_json(gpu));
  out["other_gpus"] = view.others;
  out["trials"] = Json::array();
  for (const resolve::Trial& trial : view.trials) out["trials"].push_back(trial_json(trial));
  out["command"] = nullptr;
  if (view.command)
    out["command"] = {{"exit_code", view.command->code},
                      {"peak_bytes", view.command->peak_bytes},
                      {"refusals", view.command->refusals}};
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
