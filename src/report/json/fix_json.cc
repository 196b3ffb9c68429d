// SPDX-License-Identifier: Apache-2.0
#include "report/fix.h"
#include "report/step_command.h"

namespace cufit::report {
namespace {

const char* verdict_word(checks::LinkState state) {
  return state == checks::LinkState::ok ? "works" : to_string(state);
}

}  // namespace

std::string fix_json(const FixView& view) {
  Json out;
  out["schema"] = "cufit.fix/1";
  out["cufit"] = CUFIT_VERSION;
  out["verdict"] = verdict_word(view.plan.before);
  out["steps"] = Json::array();
  for (const checks::FixStep& step : view.plan.steps)
    out["steps"].push_back({{"id", step.finding.id},
                            {"severity", to_string(step.finding.severity)},
                            {"subject", step.finding.subject},
                            {"next", finding_text(step.finding, "next", "en", view.knowledge)},
                            {"command", finding_command(step.finding, view.knowledge)},
                            {"simulated", step.simulated}});
  out["left_alone"] = view.plan.left_alone;
  out["notes"] = view.plan.notes;
  out["verdict_after"] = view.plan.certain ? Json(verdict_word(view.plan.after)) : Json(nullptr);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
