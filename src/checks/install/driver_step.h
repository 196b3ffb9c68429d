// SPDX-License-Identifier: Apache-2.0
// Which driver to install: one that serves all GPUs of the machine and the torch that is to run
// under it, so that the step does not lead into the next error.
#pragma once

#include "checks/check.h"

namespace cufit::checks {

struct DriverNeed {
  uint32_t floor = 0;        // the largest of all floors, a branch: 580; 0 = none is known
  uint32_t branch = 0;       // the maintained branch to install
  bool open_module = false;  // a GPU takes the open kernel module alone
};
// `cuda`: of the torch that is to run; empty = of the one in the main environment, if it is there.
DriverNeed driver_need(const Input& input, const std::optional<Version>& cuda = {});

// Arguments of texts: {branch} "580", {ubuntu} "nvidia-driver-580-open".
void add_driver_args(const DriverNeed& need, std::map<std::string, std::string>& args);
// "wsl", "container" or "": where the driver is installed from elsewhere.
std::string driver_place(const facts::Facts& facts);

}  // namespace cufit::checks
