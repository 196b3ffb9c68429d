// SPDX-License-Identifier: Apache-2.0
// Will this torch wheel run on that target? Three usable states and two that are not; every state
// but the plain one has its reasons, so that a rejection is never without a why.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "resolve/wheel/target.h"
#include "resolve/wheel/wheel.h"

namespace cufit::resolve {

enum class Fit {
  works,         // machine code for every GPU, a driver of its toolkit or newer
  works_minor,   // by minor-version compatibility: no PTX of that toolkit compiles
  works_ptx,     // a GPU without machine code gets it from PTX in the driver: slow first start
  needs_compat,  // only with the package cuda-compat (data-centre GPUs, Jetson)
  unknown,       // a fact is missing: the reason says which
  no,
};
const char* to_string(Fit fit);  // "works", "works_minor", ... as in JSON
bool usable(Fit fit);            // works, works_minor, works_ptx

// Text: message "resolve.reason.<id>" filled with args. Ids: gpu_code, gpu_ptx, gpu_unknown,
// driver_too_old, driver_minor, driver_compat, driver_not_told(_until), driver_absent(_until),
// driver_for_gpu_old, driver_for_gpu_new, ptx_too_new, glibc_too_old, musl, python, platform,
// jetson, no_gpu, idle_gpu, requirement, policy, extension, default_index.
struct Reason {
  std::string id;
  std::map<std::string, std::string> args;
};

struct Verdict {
  Fit fit = Fit::unknown;
  std::vector<Reason> reasons;  // the decisive one first
};

// Leaves requirements and policy aside: those are choices, this is physics.
Verdict judge(const Wheel& wheel, const Target& target, const knowledge::Knowledge& knowledge);

}  // namespace cufit::resolve
