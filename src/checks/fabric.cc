// SPDX-License-Identifier: Apache-2.0
// NVSwitch systems: CUDA starts (error 802 otherwise) only after the fabric manager has set up the
// switches. A system without NVSwitch does not need it, and its absence there is no finding.
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {

std::vector<Finding> check_fabric(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (cuda_works(facts)) return {};
  constexpr int k_system_not_ready = 802;  // CUDA_ERROR_SYSTEM_NOT_READY
  const bool not_ready = facts.cuda.init_result && *facts.cuda.init_result == k_system_not_ready;
  const Fact<std::string>& manager = facts.kernel.fabric_manager;
  const bool down = manager && *manager != "running";
  if (!not_ready && !(facts.kernel.nvswitch && down && !facts.cuda.init_result)) return {};
  Finding made =
      finding("fabric_manager", not_ready ? Severity::error : Severity::warning, k_machine);
  if (in_container(facts))
    made.variant = "container";
  else if (manager && *manager == "not_installed")
    made.variant = "not_installed";
  else if (manager && *manager == "running")
    made.variant = "running";
  made.args["state"] = manager.value_or("unknown");
  made.args["driver"] = input.driver ? facts.kernel.version.value_or(input.driver->text()) : "?";
  made.args["branch"] = input.driver ? std::to_string(input.driver->part(0)) : "?";
  made.evidence.push_back(seen(facts.cuda.init_result));
  made.evidence.push_back(seen(manager));
  return {made};
}

}  // namespace cufit::checks
