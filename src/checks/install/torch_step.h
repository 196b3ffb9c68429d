// SPDX-License-Identifier: Apache-2.0
// The decision behind every step that changes torch: which wheel, or what is in the way of it.
// doctor, explain, env check and inspect ask here, so that one machine gets one answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/check.h"
#include "checks/install/driver_step.h"
#include "checks/install/extension_release.h"
#include "checks/wheel_pick.h"

namespace cufit::checks {

struct TorchStep {
  std::optional<WheelPick> pick;
  // Who keeps torch at another release: "vllm", "0.9.0", "torch==2.7.0"; empty = nobody.
  std::string pinner, pinner_version, pin;
  // The variant of the step's text: "" = the command alone; "no_wheel"; "pinned": a package needs
  // another torch and is updated itself; "pinned.driver_too": after the driver; "pinned.older": no
  // newer release of it will do; "driver_too"; "python_too"; "conda".
  std::string blocked;
  std::string command;               // empty with "no_wheel"
  DriverNeed driver;                 // of the wheel, where it needs a newer one
  std::vector<ExtensionMove> moved;  // by the command, after torch
};
// For GPUs of these capabilities; empty = a machine whose GPU nobody named.
TorchStep torch_step(const Input& input, const facts::PythonEnv& env,
                     const std::vector<ComputeCapability>& capabilities);
// For all GPUs of the machine.
TorchStep torch_step(const Input& input, const facts::PythonEnv& env);

// What the step's command changes; it has a wheel.
Change change_of(const facts::PythonEnv& env, const TorchStep& step);
// Sets arguments of texts (install, last_torch, last_tag, python, have_python, branch, ubuntu,
// pinner, pinner_version, pin) and the change.
void add_torch_step(const facts::PythonEnv& env, const TorchStep& step, Finding& made);

}  // namespace cufit::checks
