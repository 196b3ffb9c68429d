// SPDX-License-Identifier: Apache-2.0
// Schema cufit.diff/1 for machines and environments. Texts are English. Members may be added within
// the schema's version, none is renamed or removed.
#include "report/diff.h"
#include "report/json/json_value.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

using Where = resolve::FindingChange::Where;
using Worse = resolve::MachineDifference::Worse;

Json side_json(const DiffSide& side) {
  const checks::Report& report = side.machine.report;
  const facts::PythonEnv* env = side.machine.env();
  Json out;
  out["name"] = side.name;
  out["kind"] = side.kind;
  out["verdict"] = report.verdict == checks::LinkState::ok ? "works" : to_string(report.verdict);
  out["environment"] = env != nullptr ? Json(env->path) : Json();
  return out;
}

Json fact_json(const resolve::FactChange& change) {
  return {{"field", change.field},
          {"keys", change.keys},
          {"topic", to_string(change.topic)},
          {"weight", to_string(change.weight)},
          {"a", or_null(change.a)},
          {"b", or_null(change.b)}};
}

Json package_json(const resolve::PackageChange& change) {
  return {{"name", change.name}, {"a", or_null(change.a)}, {"b", or_null(change.b)}};
}

Json finding_json(const DiffView& view, const resolve::FindingChange& change) {
  const bool of_b =
      change.b != nullptr && (change.a == nullptr || view.difference.worse != Worse::a);
  const checks::Finding& one = of_b ? *change.b : *change.a;
  Json out;
  out["in"] = change.where == Where::only_a ? "a" : change.where == Where::only_b ? "b" : "both";
  out["id"] = one.id;
  out["severity_a"] = change.a != nullptr ? Json(to_string(change.a->severity)) : Json();
  out["severity_b"] = change.b != nullptr ? Json(to_string(change.b->severity)) : Json();
  out["subject"] = one.subject;
  out["summary"] = finding_text(one, "title", "en", view.knowledge);
  out["why"] = finding_text(one, "why", "en", view.knowledge);
  out["next"] = finding_text(one, "next", "en", view.knowledge);
  out["command"] = finding_command(one, view.knowledge);
  if (!one.unknown_because.empty()) out["unknown_because"] = one.unknown_because;
  out["evidence"] = Json::array();
  for (const checks::Evidence& item : one.evidence)
    out["evidence"].push_back(
        {{"kind", item.kind}, {"detail", item.detail}, {"value", item.value}});
  out["facts"] = Json::array();
  for (const size_t i : change.facts)
    out["facts"].push_back(fact_json(view.difference.facts.changes[i]));
  out["packages"] = Json::array();
  for (const size_t i : change.packages)
    out["packages"].push_back(package_json(view.difference.packages[i]));
  return out;
}

}  // namespace

std::string diff_json(const DiffView& view) {
  const resolve::MachineDifference& difference = view.difference;
  Json out;
  out["schema"] = "cufit.diff/1";
  out["cufit"] = CUFIT_VERSION;
  out["compared"] = "machines";
  out["a"] = side_json(view.a);
  out["b"] = side_json(view.b);
  out["differs"] = difference.differs;
  out["worse"] = difference.worse == Worse::a   ? Json("a")
                 : difference.worse == Worse::b ? Json("b")
                                                : Json();
  out["findings"] = Json::array();
  for (const resolve::FindingChange& change : difference.findings)
    out["findings"].push_back(finding_json(view, change));
  out["facts"] = Json::array();
  for (const resolve::FactChange& change : difference.facts.changes)
    out["facts"].push_back(fact_json(change));
  out["packages"] = Json::array();
  for (const resolve::PackageChange& change : difference.packages)
    out["packages"].push_back(package_json(change));
  out["environments_compared"] = difference.env_compared;
  out["shared_findings"] = Json::array();
  for (const resolve::FindingChange& change : difference.shared)
    out["shared_findings"].push_back(change.b != nullptr ? change.b->id : change.a->id);
  out["not_comparable"] = Json::array();
  for (const resolve::OneSided& one : difference.facts.one_sided)
    out["not_comparable"].push_back({{"field", one.field},
                                     {"key", or_null(one.key)},
                                     {"known_in", one.in_a ? "a" : "b"},
                                     {"value", one.value},
                                     {"missing", to_string(one.why)},
                                     {"note", or_null(one.note)}});
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
