// SPDX-License-Identifier: Apache-2.0
// Schema cufit.k8s.lint/1. Texts are English. Members may be added within the schema's version, none
// is renamed or removed.
#include "report/json/json_value.h"
#include "report/k8s.h"
#include "report/resolve.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

Json lint_object(const std::string& file, const formats::ManifestObject& one) {
  return {{"file", file},
          {"line", one.line},
          {"api", or_null(one.api)},
          {"kind", or_null(one.kind)},
          {"name", or_null(one.name)},
          {"namespace", or_null(one.space)},
          {"looked_at", one.has_pods}};
}

Json lint_node(const resolve::ClusterNode& node) {
  Json out;
  out["name"] = node.name;
  out["source"] = node.source;
  out["gpus"] = node.target ? Json(resolve::gpus_text(*node.target)) : Json();
  out["driver"] = node.target ? driver_or_null(node.target->driver) : Json();
  out["resources"] = Json::object();
  for (const auto& [name, count] : node.resources) out["resources"][name] = count;
  return out;
}

Json lint_finding(const LintView& view, const resolve::LintFinding& one) {
  const checks::Finding finding = with_reason(one, "en", view.knowledge);
  Json out;
  out["id"] = finding.id;
  out["severity"] = to_string(finding.severity);
  out["file"] = view.input.files[one.file].path;
  out["line"] = one.line;
  out["object"] = one.object;
  out["container"] = or_null(one.container);
  out["summary"] = finding_text(finding, "title", "en", view.knowledge);
  out["why"] = finding_text(finding, "why", "en", view.knowledge);
  out["next"] = finding_text(finding, "next", "en", view.knowledge);
  out["command"] = finding_command(finding, view.knowledge);
  out["place"] = one.yaml.empty() ? Json() : Json(one.place);
  out["yaml"] = or_null(one.yaml);
  out["evidence"] = Json::array();
  for (const checks::Evidence& item : finding.evidence)
    out["evidence"].push_back(
        {{"kind", item.kind}, {"detail", item.detail}, {"value", item.value}});
  return out;
}

}  // namespace

checks::Finding with_reason(const resolve::LintFinding& finding, std::string_view lang,
                            const knowledge::Knowledge& knowledge) {
  checks::Finding out = finding.finding;
  if (finding.reason) out.args["reason"] = reason_text(*finding.reason, lang, knowledge);
  return out;
}

std::string lint_json(const LintView& view) {
  Json out;
  out["schema"] = "cufit.k8s.lint/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, view.knowledge);
  out["pods"] = view.lint.pods;
  out["gpu_pods"] = view.lint.gpu_pods;
  out["objects"] = Json::array();
  for (const resolve::LintFile& file : view.input.files)
    for (const formats::ManifestObject& one : file.objects.objects)
      out["objects"].push_back(lint_object(file.path, one));
  out["nodes"] = Json::array();
  for (const resolve::ClusterNode& node : view.input.nodes) out["nodes"].push_back(lint_node(node));
  out["findings"] = Json::array();
  for (const resolve::LintFinding& one : view.lint.findings)
    out["findings"].push_back(lint_finding(view, one));
  out["not_judged"] = Json::array();
  for (const resolve::Unjudged& one : view.lint.unjudged)
    out["not_judged"].push_back(
        {{"id", one.id},
         {"text", message(view.knowledge, "report.k8s.unjudged." + one.id, "en", one.args)}});
  out["problems"] = view.problems;
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
