// SPDX-License-Identifier: Apache-2.0
// Schema cufit.image.audit/1. Texts are English. Members may be added within the schema's version,
// none is renamed or removed.
#include <algorithm>

#include "base/format.h"
#include "facts/secrets.h"
#include "report/image.h"
#include "report/resolve.h"
#include "report/json/json_value.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

Json file_json(const resolve::ImageFile& file) {
  return {{"name", file.name},
          {"path", file.path},
          {"version", or_null(file.version)},
          {"package", or_null(file.package)},
          {"size_bytes", file.size_bytes},
          {"layer", file.layer + 1}};
}

Json code_json(const std::vector<formats::DeviceCode>& code) {
  Json out = Json::array();
  for (const formats::DeviceCode& one : code)
    out.push_back({{"kind", formats::to_string(one.kind)},
                   {"arch", one.arch},
                   {"ptx_isa", or_null(one.ptx_isa)},
                   {"loadable", one.loadable}});
  return out;
}

Json image_part(const ImageView& view) {
  const facts::OpenedImage& image = view.image;
  Json out;
  out["path"] = image.path;
  out["layout"] = image.layout;
  out["tags"] = image.tags;
  out["manifest"] = image.digest;
  out["platform"] = {{"os", or_null(image.config.os)},
                     {"architecture", or_null(image.config.architecture)}};
  out["platforms"] = image.platforms;
  out["other_images"] = image.other_images;
  out["layer_digests_verified"] =
      !image.layers.empty() &&
      std::all_of(image.layers.begin(), image.layers.end(),
                  [](const facts::ImageLayer& layer) { return layer.verified; });
  out["layers"] = Json::array();
  const auto& made_by = image.config.made_by;
  for (size_t i = 0; i < image.layers.size(); ++i) {
    const facts::ImageLayer& layer = image.layers[i];
    out["layers"].push_back(
        {{"name", layer.name},
         {"stored_bytes", layer.stored_bytes},
         {"expanded_bytes", layer.expanded_bytes},
         {"digest_verified", layer.verified},
         {"made_by",
          made_by.size() == image.layers.size() ? or_null(shown_step(made_by[i])) : Json()}});
  }
  return out;
}

Json torch_json(const ImageView& view, const resolve::ImageTorch& torch) {
  const facts::PythonEnv& env = view.facts.envs[torch.env];
  const resolve::Wheel& wheel = torch.wheel;
  Json out;
  out["environment"] = env.path;
  out["python"] = env.python ? Json(*env.python) : Json();
  out["torch"] = env.torch.version ? Json(*env.torch.version) : Json();
  out["variant"] = or_null(wheel.tag);
  out["cuda"] = or_null(wheel.cuda);
  out["driver_min"] = driver_or_null(wheel.driver_min);
  out["driver_full"] = driver_or_null(wheel.driver_full);
  out["glibc"] = or_null(wheel.glibc);
  out["device_code_known"] = torch.code_known;
  out["device_code"] = code_json(wheel.code);
  out["capabilities"] = resolve::gpu_capabilities(wheel, view.knowledge);
  out["ptx"] = resolve::gpu_ptx(wheel);
  out["targets"] = Json::array();
  for (size_t i = 0; i < torch.verdicts.size(); ++i) {
    Json reasons = Json::array();
    for (const resolve::Reason& reason : torch.verdicts[i].reasons)
      reasons.push_back({{"id", reason.id},
                         {"args", reason.args},
                         {"text", reason_text(reason, "en", view.knowledge)}});
    out["targets"].push_back({{"target", view.audit.targets[i].label},
                              {"fit", to_string(torch.verdicts[i].fit)},
                              {"own_compat", bool(torch.by_own_compat[i])},
                              {"broken_by", torch.broken_by == resolve::ImageTorch::npos
                                                ? or_null(torch.blocked_by[i].id)
                                                : Json(view.audit.findings[torch.broken_by].id)},
                              {"reasons", std::move(reasons)}});
  }
  return out;
}

Json defect_json(const ImageView& view, const resolve::ImageDefect& defect) {
  const auto text = [&](const char* part, const char* lang = "en") {
    return message(view.knowledge, "report.image.defect." + defect.id + "." + part, lang,
                   defect.args);
  };
  return {
      {"id", defect.id},          {"severity", to_string(defect.severity)},
      {"summary", text("title")}, {"why", text("why")},
      {"next", text("next")},     {"command", step_command_json(text("next"), text("next", "zh"))}};
}

Json finding_json(const ImageView& view, const checks::Finding& finding) {
  Json out;
  out["id"] = finding.id;
  out["severity"] = to_string(finding.severity);
  out["subject"] = finding.subject;
  for (const char* part : {"title", "why", "next"})
    out[std::string(part) == "title" ? "summary" : part] =
        finding_text(finding, part, "en", view.knowledge);
  out["command"] = finding_command(finding, view.knowledge);
  out["evidence"] = Json::array();
  for (const checks::Evidence& item : finding.evidence)
    out["evidence"].push_back(
        {{"kind", item.kind}, {"detail", item.detail}, {"value", item.value}});
  return out;
}

Json rule_json(const ImageView& view, const resolve::ImageRule& rule) {
  return {{"id", rule.id},
          {"state", to_string(rule.state)},
          {"text", message(view.knowledge, "report.image.rule." + rule.id, "en")},
          {"findings", rule.findings}};
}

Json settings_json(const formats::ImageConfig& config) {
  Json variables = Json::object();
  for (const auto& [name, value] : config.variables)
    if (starts_with(name, "NVIDIA_") || starts_with(name, "CUDA_") || name == "LD_LIBRARY_PATH" ||
        name == "LD_PRELOAD")
      variables[name] = value;
  return {{"variables", std::move(variables)},
          {"entrypoint", config.entrypoint},
          {"command", config.command}};
}

}  // namespace

std::string shown_step(const std::string& made_by) {
  std::string words = made_by;
  std::replace(words.begin(), words.end(), ' ', '\0');
  return facts::shown_command(words);
}

std::string image_json(const ImageView& view) {
  const resolve::ImageAudit& audit = view.audit;
  Json out;
  out["schema"] = "cufit.image.audit/1";
  out["cufit"] = CUFIT_VERSION;
  out["image"] = image_part(view);
  out["defects_found"] = audit.has_defects();
  const facts::SystemFacts& system = view.facts.system;
  out["distribution"] = system.distribution ? Json(*system.distribution) : Json();
  out["glibc"] = system.glibc ? Json(*system.glibc) : Json();
  out["torch"] = Json::array();
  for (const resolve::ImageTorch& torch : audit.torches)
    out["torch"].push_back(torch_json(view, torch));
  out["targets"] = Json::array();
  for (size_t i = 0; i < audit.targets.size(); ++i) {
    Json served_by = Json::array();
    for (const size_t one : audit.served_by(i))
      served_by.push_back(view.facts.envs[audit.torches[one].env].path);
    out["targets"].push_back({{"target", audit.targets[i].label},
                              {"served", audit.serves(i)},
                              {"served_by", std::move(served_by)}});
  }
  out["libraries"] = Json::array();
  for (const resolve::ImageFile& file : audit.libraries)
    out["libraries"].push_back(file_json(file));
  out["driver_files"] = Json::array();
  for (const resolve::ImageFile& file : audit.driver)
    out["driver_files"].push_back(file_json(file));
  out["compat"] = Json::array();
  for (const facts::DriverLibrary& one : view.facts.driver_libraries)
    if (one.origin == "compat")
      out["compat"].push_back({{"path", one.path},
                               {"version", or_null(one.version)},
                               {"cuda", or_null(one.compat_cuda)},
                               {"drivers", one.compat_drivers}});
  out["copies"] = Json::array();
  for (const resolve::ImageCopies& group : audit.copies) {
    Json files = Json::array();
    for (const resolve::ImageFile& file : group.files) files.push_back(file_json(file));
    out["copies"].push_back({{"name", group.name},
                             {"extra_bytes", group.extra_bytes},
                             {"in_base", group.in_base},
                             {"files", std::move(files)}});
  }
  out["hidden_bytes"] = audit.hidden_bytes;
  out["hidden"] = Json::array();
  for (size_t i = 0; i < std::min<size_t>(audit.hidden.size(), 100); ++i)
    out["hidden"].push_back({{"path", audit.hidden[i].path},
                             {"size_bytes", audit.hidden[i].size_bytes},
                             {"layer", audit.hidden[i].layer + 1}});
  out["settings"] = settings_json(view.image.config);
  out["defects"] = Json::array();
  for (const resolve::ImageDefect& defect : audit.defects)
    out["defects"].push_back(defect_json(view, defect));
  out["findings"] = Json::array();
  for (const checks::Finding& finding : audit.findings)
    out["findings"].push_back(finding_json(view, finding));
  if (!audit.rules.empty()) {
    out["rules_kept"] = audit.keeps_rules();
    out["rules"] = Json::array();
    for (const resolve::ImageRule& rule : audit.rules)
      out["rules"].push_back(rule_json(view, rule));
  }
  out["problems"] = view.image.problems;
  for (const std::string& problem : view.facts.problems) out["problems"].push_back(problem);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
