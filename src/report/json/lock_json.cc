// SPDX-License-Identifier: Apache-2.0
// The schemas that report/lock.h names. Members may be added within a schema's version, none is
// renamed or removed.
#include "report/lock.h"
#include "report/resolve.h"
#include "report/json/json_value.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

Json head(const std::string& schema) { return {{"schema", schema}, {"cufit", CUFIT_VERSION}}; }

Json judged_head(const std::string& schema, const knowledge::Knowledge& knowledge) {
  Json out = head(schema);
  put_tables(out, knowledge);
  return out;
}

std::string lock_text_of(const Json& json) { return json.dump(2) + "\n"; }

Json class_json(const resolve::LockClass& one, uint64_t unsized) {
  // Where the index gives no size at all, nothing is known: 0 would be a claim.
  const bool unknown = one.download_bytes == 0 && unsized > 0;
  return {{"name", one.name},
          {"file", one.file},
          {"sha256", one.sha256},
          {"torch", one.wheel.torch},
          {"tag", one.wheel.tag},
          {"python", one.python},
          {"platform", one.wheel.platform},
          {"packages", one.packages},
          {"download_bytes", unknown ? Json() : Json(one.download_bytes)},
          {"unsized_packages", unsized},
          {"serves", one.serves},
          {"why", one.why}};
}

}  // namespace

std::string lock_report_json(const LockView& view) {
  Json out = judged_head("cufit.lock.report/1", view.knowledge);
  out["folder"] = view.folder;
  out["unchanged"] = view.unchanged;
  out["requirements"] = view.lock.requirements;
  out["targets"] = view.lock.targets;
  out["classes"] = Json::array();
  for (size_t i = 0; i < view.lock.classes.size(); ++i) {
    out["classes"].push_back(
        class_json(view.lock.classes[i], i < view.unsized.size() ? view.unsized[i] : 0));
    if (i < view.built.size()) out["classes"].back()["built_from_source"] = view.built[i];
    if (i < view.fits.size()) out["classes"].back()["fit"] = resolve::to_string(view.fits[i]);
  }
  return lock_text_of(out);
}

std::string lock_failure_json(const LockFailureView& view) {
  Json out = judged_head("cufit.lock.report/1", view.knowledge);
  out["failed"] = Json::array();
  for (const resolve::Answer& answer : view.failed) {
    Json rejected = Json::array();
    for (const resolve::Choice& choice : answer.rejected) {
      Json reasons = Json::array();
      for (const resolve::Reason& reason : choice.verdict.reasons)
        reasons.push_back({{"id", reason.id}, {"text", reason_text(reason, "en", view.knowledge)}});
      rejected.push_back(
          {{"torch", choice.wheel.torch}, {"tag", choice.wheel.tag}, {"reasons", reasons}});
    }
    out["failed"].push_back(
        {{"target", answer.target.label},
         {"conflict", answer.conflict},
         {"last_for_gpus", answer.last_for_gpus.torch.empty()
                               ? Json(nullptr)
                               : Json(answer.last_for_gpus.torch + "+" + answer.last_for_gpus.tag)},
         {"rejected", std::move(rejected)}});
  }
  return lock_text_of(out);
}

std::string findings_json(const FindingsView& view) {
  Json out = judged_head(view.schema, view.knowledge);
  out["verdict"] = only_notes(view) ? "good" : "differs";
  out["asked_installer"] = view.not_asked.empty();
  out["findings"] = Json::array();
  for (const checks::Finding& finding : view.findings) {
    Json one = {{"id", finding.id},
                {"severity", to_string(finding.severity)},
                {"subject", finding.subject},
                {"summary", finding_text(finding, "title", "en", view.knowledge)},
                {"why", finding_text(finding, "why", "en", view.knowledge)},
                {"next", finding_text(finding, "next", "en", view.knowledge)},
                {"command", finding_command(finding, view.knowledge)},
                {"args", finding.args}};
    if (!finding.unknown_because.empty()) one["unknown_because"] = finding.unknown_because;
    out["findings"].push_back(std::move(one));
  }
  return lock_text_of(out);
}

std::string env_list_json(const EnvListView& view) {
  Json out = head(view.schema);
  out["environments"] = Json::array();
  for (const EnvRow& row : view.rows)
    out["environments"].push_back({{"class", row.name},
                                   {"state", row.state},
                                   {"folder", row.folder},
                                   {"torch", row.torch},
                                   {"python", row.python},
                                   {"installer", row.installer},
                                   {"created", row.created},
                                   {"packages", row.packages},
                                   {"bytes", row.bytes},
                                   {"shared_bytes", row.shared_bytes}});
  for (size_t i = 0; i < view.rows.size(); ++i)
    if (!view.rows[i].why.empty()) out["environments"][i]["why"] = view.rows[i].why;
  return lock_text_of(out);
}

}  // namespace cufit::report
