// SPDX-License-Identifier: Apache-2.0
// Schema cufit.resolve/1. Members may be added within the schema's version, none is renamed or
// removed.
#include "report/resolve.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

using resolve::Choice;
using resolve::Target;

Json target_json(const Target& target) {
  Json out;
  out["label"] = target.label;
  out["gpus"] = Json::array();
  for (const resolve::TargetGpu& gpu : target.gpus)
    out["gpus"].push_back(
        {{"name", gpu.name}, {"compute_capability", gpu.cc.text()}, {"count", gpu.count}});
  out["unknown_gpus"] = target.unknown_gpus;
  out["driver"] = driver_or_null(target.driver);
  static constexpr const char* k_states[] = {"known", "absent", "not_told"};
  out["driver_state"] = k_states[static_cast<int>(target.driver_state)];
  out["driver_cuda"] = or_null(target.driver_cuda);
  out["platform"] = target.platform;
  out["glibc"] = or_null(target.glibc);
  out["python"] = or_null(target.python);
  return out;
}

Json choice_json(const Choice& choice, const knowledge::Knowledge& knowledge) {
  const resolve::Wheel& wheel = choice.wheel;
  Json out;
  out["torch"] = wheel.torch;
  out["variant"] = wheel.tag;
  out["cuda"] = or_null(wheel.cuda);
  out["released"] = or_null(wheel.released);
  out["python"] = or_null(choice.python);
  out["fit"] = resolve::to_string(choice.verdict.fit);
  out["reasons"] = Json::array();
  for (const resolve::Reason& reason : choice.verdict.reasons)
    out["reasons"].push_back(
        {{"id", reason.id}, {"args", reason.args}, {"text", reason_text(reason, "en", knowledge)}});
  out["cubins"] = capabilities_of(wheel, formats::CodeKind::cubin);
  out["ptx"] = capabilities_of(wheel, formats::CodeKind::ptx);
  out["driver_min"] = driver_or_null(wheel.driver_min);
  out["driver_full"] = driver_or_null(wheel.driver_full);
  out["glibc"] = or_null(wheel.glibc);
  out["on_default_index"] = wheel.on_default_index;
  out["source"] = wheel.source;
  out["companions"] = Json::object();
  for (const resolve::Companion& one : choice.companions) {
    if (one.version.empty())
      out["companions"][one.package] = {{"version", nullptr}, {"why_not", one.why_not}};
    else
      out["companions"][one.package] = {{"version", one.version}};
    if (!one.version.empty() && !one.origin.empty())
      out["companions"][one.package]["origin"] = one.origin;
    if (!one.url.empty()) out["companions"][one.package]["url"] = one.url;
  }
  return out;
}

Json answer_json(const resolve::Answer& answer, const resolve::Request& request,
                 const knowledge::Knowledge& knowledge, const facts::Facts* machine) {
  Json out;
  out["target"] = target_json(answer.target);
  out["choices"] = Json::array();
  for (const Choice& choice : answer.usable) {
    Json one = choice_json(choice, knowledge);
    one["install"] = install_line(choice, answer.target, request, knowledge, machine);
    for (const resolve::MeasuredFaster& other : choice.faster)
      one["measured"].push_back({{"than", other.than},
                                 {"workload", other.workload},
                                 {"precision", or_null(other.precision)},
                                 {"ratio", other.ratio},
                                 {"low", other.low},
                                 {"high", other.high},
                                 {"file", other.file}});
    out["choices"].push_back(std::move(one));
  }
  out["rejected"] = Json::array();
  for (const Choice& choice : answer.rejected)
    out["rejected"].push_back(choice_json(choice, knowledge));
  out["groups"] = Json::array();
  for (const resolve::Answer& group : answer.groups)
    out["groups"].push_back(answer_json(group, request, knowledge, nullptr));
  out["conflict"] = answer.conflict;
  out["newer_than_tables"] = or_null(answer.beyond_tables);
  const resolve::Wheel& last = answer.last_for_gpus;
  out["last_for_gpus"] = last.torch.empty() ? Json(nullptr)
                                            : Json{{"torch", last.torch},
                                                   {"variant", last.tag},
                                                   {"released", or_null(last.released)}};
  out["table_disagreements"] = Json::array();
  for (const resolve::Disagreement& one : answer.disagreements)
    out["table_disagreements"].push_back({{"torch", one.torch},
                                          {"variant", one.tag},
                                          {"path", one.path},
                                          {"row", one.row},
                                          {"file", one.file},
                                          {"differ", one.differ}});
  return out;
}

Json variants_json(const resolve::VariantChoice& choice, const ResolveView& view) {
  Json out = {{"torch", view.variants_torch},
              {"url", view.variants_url},
              {"taken", or_null(choice.taken)},
              {"variants", Json::array()},
              {"left_out", Json::array()}};
  for (const resolve::VariantChoice::Row& row : choice.rows)
    out["variants"].push_back({{"label", row.label}, {"fit", facts::to_string(row.fit)}});
  for (const resolve::TargetGpu& gpu : choice.left_out) out["left_out"].push_back(gpu.name);
  return out;
}

}  // namespace

std::string resolve_json(const ResolveView& view) {
  Json out;
  out["schema"] = "cufit.resolve/1";
  out["cufit"] = CUFIT_VERSION;
  put_tables(out, view.knowledge);
  out["requirements"] = Json::array();
  for (const formats::Requirement& one : view.request.requirements)
    out["requirements"].push_back(one.text);
  out["not_judged"] = view.ignored;
  out["policy"] = or_null(view.request.policy.file);
  out["answers"] = Json::array();
  for (size_t i = 0; i < view.answers.size(); ++i) {
    Json one = answer_json(view.answers[i], view.request, view.knowledge,
                           i < view.machines.size() ? view.machines[i] : nullptr);
    one["obstacle"] = or_null(i < view.obstacles.size() ? view.obstacles[i] : "");
    one["wheel_variants"] =
        i < view.variants.size() ? variants_json(view.variants[i], view) : Json(nullptr);
    out["answers"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
