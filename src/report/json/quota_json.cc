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

Json trial_json(const resolve::Trial& trial) {
  Json out;
  out["way"] = trial.way.way;
  out["route"] = trial.way.route;
  out["proof"] = resolve::to_string(trial.proof);
  out["phase"] = trial.facts.phase;
  out["below_result"] = trial.facts.below < 0 ? Json(nullptr) : Json(trial.facts.below);
  out["above_result"] = trial.facts.above < 0 ? Json(nullptr) : Json(trial.facts.above);
  out["refusals"] = trial.facts.refusals;
  out["note"] = or_null(trial.facts.note);
  return out;
}

}  // namespace

std::string quota_status_json(const QuotaStatusView& view) {
  Json out;
  out["schema"] = "cufit.quota/1";
  out["cufit"] = CUFIT_VERSION;
  out["backend"] = "guard";  // files of domains are its alone
  out["domains"] = Json::array();
  for (const resolve::DomainUsage& domain : view.domains)
    out["domains"].push_back(domain_usage_json(domain));
  out["rejected"] = Json::array();
  out["skipped"] = Json::array();
  for (const facts::SkippedDomain& one : view.skipped)
    out["skipped"].push_back({{"path", one.path}, {"why", one.why}});
  return out.dump(2) + "\n";
}

std::string quota_plan_json(const QuotaPlanView& view) {
  using State = resolve::BackendVerdict::State;
  const resolve::BackendVerdict* chosen = resolve::chosen_backend(view.verdicts);
  Json out;
  out["schema"] = "cufit.quota/1";
  out["cufit"] = CUFIT_VERSION;
  out["backend"] = chosen ? Json(resolve::to_string(chosen->backend)) : Json(nullptr);
  out["domains"] = Json::array();
  out["rejected"] = Json::array();
  for (const resolve::BackendVerdict& verdict : view.verdicts) {
    if (verdict.state == State::starts) continue;
    Json one;
    one["backend"] = resolve::to_string(verdict.backend);
    one["why"] = quota_reason(verdict, "why", verdict.why, "en", view.knowledge);
    one["to_enable"] =
        or_null(quota_reason(verdict, "enable", verdict.to_enable, "en", view.knowledge));
    one["possible"] = verdict.state == State::possible;
    out["rejected"].push_back(std::move(one));
  }
  out["skipped"] = Json::array();
  return out.dump(2) + "\n";
}

std::string quota_verify_json(const QuotaVerifyView& view) {
  const resolve::TrialSizes sizes = resolve::trial_sizes(view.limit_bytes);
  Json out;
  out["schema"] = "cufit.quota.verify/1";
  out["cufit"] = CUFIT_VERSION;
  out["holds"] = resolve::all_hold(view.trials) && !went_over(view);
  out["limit_bytes"] = view.limit_bytes;
  out["below_bytes"] = sizes.below;
  out["above_bytes"] = sizes.above;
  out["trials"] = Json::array();
  for (const resolve::Trial& trial : view.trials) out["trials"].push_back(trial_json(trial));
  out["command"] = nullptr;
  if (view.command_code) {
    uint64_t peak = 0, refusals = 0;
    for (const formats::QuotaDevice& device : view.after.devices) {
      peak = std::max(peak, device.peak_bytes);
      refusals += device.refusals;
    }
    out["command"] = {
        {"exit_code", *view.command_code}, {"peak_bytes", peak}, {"refusals", refusals}};
  }
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
