// SPDX-License-Identifier: Apache-2.0
#include "checks/install/torch_step.h"

#include <algorithm>

#include "checks/install/after_step.h"
#include "checks/install/conda_torch.h"
#include "checks/install/torch_command.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"

namespace cufit::checks {
namespace {

std::optional<Version> cuda_of(const Input& input, const WheelPick& pick) {
  const knowledge::CudaTag* tag = input.knowledge.find_cuda_tag(pick.tag);
  return tag != nullptr ? parse_version(tag->cuda) : std::nullopt;
}

// A text names a program and not its METADATA: it needs the torch that it was installed with.
std::optional<TorchPin> claimed_pin(const Input& input, const facts::PythonEnv& env,
                                    const std::string& torch) {
  const std::string installed = torch_build_of(input, env).release;
  if (installed == torch || input.facts.origin != "text") return std::nullopt;
  for (const knowledge::TorchPinner& row : input.knowledge.torch_pinners) {
    const facts::Distribution* package = find_distribution(env, row.package);
    if (package == nullptr || !package->needs.empty()) continue;
    TorchPin pin;
    pin.package = package->name, pin.version = package->version;
    pin.requirement = installed.empty() ? "its own torch" : "torch==" + installed;
    return pin;
  }
  return std::nullopt;
}

// The first package that would not take the wheel. torchvision and torchaudio go along with torch.
std::optional<TorchPin> pin_against(const Input& input, const facts::PythonEnv& env,
                                    const std::string& torch, const std::string& tag) {
  for (TorchPin& pin : torch_pins(env))
    if (!goes_with_torch(pin.package) && !pin.takes(torch) &&
        !can_move(input, pin.package, torch, tag))
      return std::move(pin);
  return claimed_pin(input, env, torch);
}

// What the default Python index gives today: the newest torch in the default variant. A program's
// newest release brings that one. null = the table has no such row.
const knowledge::WheelVariant* newest_default(const Input& input) {
  const knowledge::WheelVariant* newest = nullptr;
  for (const knowledge::WheelVariant& wheel : input.knowledge.wheel_variants) {
    const knowledge::TorchRelease* release = input.knowledge.find_torch(wheel.torch);
    if (release == nullptr || release->default_linux_x86_64 != wheel.tag) continue;
    const std::optional<Version> version = parse_version(wheel.torch);
    if (version && (newest == nullptr || *version > *parse_version(newest->torch))) newest = &wheel;
  }
  return newest;
}

// "pinned": the torch of a newer release runs here; "pinned.driver_too": with a newer driver;
// "pinned.older": this GPU needs another build.
void choose_update(const Input& input, const std::vector<ComputeCapability>& capabilities,
                   TorchStep& step) {
  const knowledge::WheelVariant* newest = newest_default(input);
  const bool serves = newest != nullptr && std::all_of(capabilities.begin(), capabilities.end(),
                                                       [&](ComputeCapability cc) {
                                                         return wheel_serves(input, *newest, cc);
                                                       });
  step.blocked = serves ? "pinned" : "pinned.older";
  if (!serves || (driver_runs(input, *newest) && !driver_precedes_gpu(input, capabilities))) return;
  step.blocked = "pinned.driver_too";
  const knowledge::CudaTag* tag = input.knowledge.find_cuda_tag(newest->tag);
  step.driver = driver_need(input, tag != nullptr ? parse_version(tag->cuda) : std::nullopt);
}

}  // namespace

TorchStep torch_step(const Input& input, const facts::PythonEnv& env,
                     const std::vector<ComputeCapability>& capabilities) {
  TorchStep step;
  step.pick = capabilities.empty() ? pick_wheel_for_any(input, &env)
                                   : pick_wheel(input, capabilities, &env);
  if (step.pick && driver_precedes_gpu(input, capabilities)) step.pick->needs_newer_driver = true;
  if (!step.pick) {
    step.blocked = "no_wheel";
    return step;
  }
  if (const std::optional<TorchPin> pin =
          pin_against(input, env, step.pick->torch, step.pick->tag)) {
    step.pinner = pin->package, step.pinner_version = pin->version, step.pin = pin->requirement;
    step.command = install_packages(input, env, {pin->package}, InstallKind::update);
    choose_update(input, capabilities, step);
    return step;
  }
  step.command = install_text(input, env, step.pick);
  if (step.pick->python.empty() && !step.command.empty())
    step.moved = extensions_to_move(input, env, step.pick->torch, step.pick->tag);
  for (const ExtensionMove& move : step.moved) step.command += " && " + move.command;
  if (step.pick->needs_newer_driver) {
    step.blocked = "driver_too";
    step.driver = driver_need(input, cuda_of(input, *step.pick));
  } else if (!step.pick->python.empty()) {
    step.blocked = "python_too";
  } else if (replaces_conda_torch(env) && conda_torch_packages(env).empty()) {
    step.blocked = "conda";
  }
  return step;
}

namespace {

bool has_no_gpu(const Input& input) {
  const facts::Facts& facts = input.facts;
  return input.gpus.empty() && !input.what_if && facts.pci && facts.pci->empty() &&
         !is_wsl(facts) && !is_jetson(facts) && !in_container(facts);
}

}  // namespace

TorchStep torch_step(const Input& input, const facts::PythonEnv& env) {
  if (has_no_gpu(input)) {  // the CUDA build would run, and is several gigabytes larger
    TorchStep step;
    step.pick = pick_cpu_wheel(input, env);
    if (step.pick) step.command = install_text(input, env, step.pick);
    if (step.pick) return step;
  }
  std::vector<ComputeCapability> capabilities;
  for (const GpuView& gpu : input.gpus)
    if (gpu.cc) capabilities.push_back(*gpu.cc);
  return torch_step(input, env, capabilities);
}

Change change_of(const facts::PythonEnv& env, const TorchStep& step) {
  Change change = torch_change(env, step.pick->torch, step.pick->tag, step.pick->python);
  for (const ExtensionMove& move : step.moved)
    change.requirements.push_back(move.package + "==" + move.version);
  return change;
}

void add_torch_step(const facts::PythonEnv& env, const TorchStep& step, Finding& made) {
  std::map<std::string, std::string>& args = made.args;
  if (step.pick && step.pinner.empty()) made.change = change_of(env, step);
  if (made.change && step.driver.branch != 0)
    made.change->driver = std::to_string(step.driver.branch);
  args["install"] = step.command;
  args["have_python"] = env.python.value_or("");
  args["last_torch"] = step.pick ? step.pick->torch : "";
  args["last_tag"] = step.pick ? step.pick->tag : "";
  args["python"] = step.pick ? step.pick->python : "";
  add_driver_args(step.driver, args);
  if (step.pinner.empty()) return;
  args["pinner"] = step.pinner;
  args["pinner_version"] = step.pinner_version;
  args["pin"] = step.pin;
}

}  // namespace cufit::checks
