// SPDX-License-Identifier: Apache-2.0
#include "checks/install/restore_torch.h"

#include <algorithm>

#include "base/format.h"
#include "checks/fact_view.h"
#include "checks/install/after_step.h"
#include "checks/install/torch_command.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"
#include "checks/wheel_pick.h"
#include "checks/wheel_platform.h"

namespace cufit::checks {
namespace {

// The release as the table writes it: "0.19" of a pin is 0.19.0.
const knowledge::TorchRelease* release_of(const Input& input, const TorchPin& pin) {
  for (const knowledge::TorchRelease& row : input.knowledge.torch_releases)
    if (pin.exact && pin.takes(row.version)) return &row;
  return nullptr;
}

// The default variant has code for every GPU, and the driver runs it.
bool runs_here(const Input& input, const knowledge::TorchRelease& release) {
  for (const knowledge::WheelVariant* wheel : input.knowledge.wheels_of(release.version)) {
    if (wheel->tag != release.default_linux_x86_64) continue;
    return driver_runs(input, *wheel) &&
           std::all_of(input.gpus.begin(), input.gpus.end(), [&](const GpuView& gpu) {
             return !gpu.cc || wheel_serves(input, *wheel, *gpu.cc);
           });
  }
  return false;
}

// What the program pins beside torch and is installed: "xformers==0.0.27.post2".
std::vector<std::string> brought_along(const facts::PythonEnv& env,
                                       const facts::Distribution& program) {
  std::vector<std::string> out;
  for (const facts::Distribution& one : *env.distributions) {
    if (goes_with_torch(one.name)) continue;
    const std::string pin = exact_pin(program, one.name);
    if (!pin.empty()) out.push_back(one.name + "==" + pin);
  }
  return out;
}

bool suits_all(const std::vector<TorchPin>& pins, const TorchPin& program,
               const facts::Distribution& package, std::string_view torch) {
  return std::all_of(pins.begin(), pins.end(), [&](const TorchPin& other) {
    return other.package == program.package || goes_with_torch(other.package) ||
           other.takes(torch) || !exact_pin(package, other.package).empty();
  });
}

// A project's own file names torch: there it is changed. Elsewhere the program's requirements bring
// torch, and its partners where they are pinned by it.
std::string command_of(const Input& input, const facts::PythonEnv& env, const TorchPin& program,
                       const facts::Distribution& package, const knowledge::TorchRelease& release) {
  const Owner owner = owner_of(env, true);
  if (owner.installer != Installer::pip && owner.installer != Installer::uv &&
      owner.installer != Installer::image)
    return install_command(input, env, std::string(release.version),
                           std::string(release.default_linux_x86_64));
  InstallRequest request;
  request.requirements.push_back(program.package + "==" + program.version);
  for (const auto& [name, version] :
       {std::pair<const char*, std::string_view>{"torchvision", release.torchvision},
        {"torchaudio", release.torchaudio}}) {
    const facts::Distribution* have = find_distribution(env, name);
    if (have == nullptr || version.empty() || !exact_pin(package, name).empty()) continue;
    if (public_version(have->version) != version)
      request.requirements.push_back(std::string(name) + "==" + std::string(version));
  }
  return install_command(input, env, owner, request);
}

}  // namespace

std::optional<TorchRestore> restore_torch(const Input& input, const facts::PythonEnv& env) {
  // Elsewhere the default index has other variants.
  if (wheel_platform(input.facts) != WheelPlatform::linux_x86_64) return std::nullopt;
  const std::string installed = torch_build_of(input, env).release;
  const std::vector<TorchPin> pins = torch_pins(env);
  for (const TorchPin& pin : pins) {
    if (!pin.exact || goes_with_torch(pin.package) || installed.empty() || pin.takes(installed))
      continue;
    const knowledge::TorchRelease* release = release_of(input, pin);
    const facts::Distribution* package = find_distribution(env, pin.package);
    if (release == nullptr || package == nullptr || !runs_here(input, *release) ||
        !suits_all(pins, pin, *package, release->version))
      continue;
    TorchRestore out;
    out.package = pin.package, out.version = pin.version, out.torch = release->version;
    out.command = command_of(input, env, pin, *package, *release);
    out.change = torch_change(env, out.torch, std::string(release->default_linux_x86_64));
    out.change.requirements = brought_along(env, *package);
    return out;
  }
  return std::nullopt;
}

}  // namespace cufit::checks
