// SPDX-License-Identifier: Apache-2.0
#include "checks/wheel_pick.h"

#include <algorithm>

#include "base/format.h"
#include "checks/code_match.h"
#include "checks/install/extension_release.h"
#include "checks/install/project.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"
#include "checks/wheel_platform.h"

namespace cufit::checks {

namespace {

std::string_view platform_of(const Input& input) {
  return platform_name(wheel_platform(input.facts));
}

const knowledge::ArchSet* arch_set_of(const knowledge::Knowledge& knowledge,
                                      std::string_view platform,
                                      const knowledge::WheelVariant& wheel) {
  // The variant row names the set of Linux on x86-64. Other platforms' builds of the same tag have
  // their own: "cu130" is in "a-cu13", "cu126" in "a-cu126"; "l-cu128-28" is "w-cu128" on Windows.
  const knowledge::ArchSet* fallback = nullptr;
  const std::string_view set_name = wheel.arch_set.size() > 2 ? wheel.arch_set.substr(2) : "";
  for (const knowledge::ArchSet& set : knowledge.arch_sets) {
    if (set.platform != platform) continue;
    if (set.id == wheel.arch_set) return &set;
    const std::string_view name = set.id.size() > 2 ? set.id.substr(2) : "";
    if (name.empty()) continue;
    if (platform == "linux_aarch64" && starts_with(wheel.tag, name)) fallback = &set;
    if (platform == "windows_amd64" && starts_with(set_name, name)) fallback = &set;
  }
  return fallback;
}

std::vector<std::string> numbers(std::string_view capabilities) {
  std::vector<std::string> sms;
  for (std::string_view text : split(capabilities, ' '))
    if (auto cc = parse_compute_capability(text)) sms.push_back(cc->sm());
  return sms;
}

// PTX ISA of a toolkit: the newest that this CUDA accepts.
std::string isa_of(const knowledge::Knowledge& knowledge, std::string_view cuda) {
  auto have = parse_version(cuda);
  std::string newest;
  for (const knowledge::PtxIsaRow& row : knowledge.ptx_isas) {
    auto first = parse_version(row.cuda), isa = parse_version(row.isa),
         best = parse_version(newest);
    if (have && first && isa && *first <= *have && (!best || *isa > *best))
      newest = std::string(row.isa);
  }
  return newest;
}

std::vector<formats::DeviceCode> code_of(const Input& input, const knowledge::WheelVariant& wheel) {
  return wheel_code(input.knowledge, platform_of(input), wheel);
}

// Wheels exist per Python minor; an unknown Python is no reason against one.
bool has_python(const knowledge::TorchRelease& release, const facts::PythonEnv& env) {
  auto have = env.python ? parse_version(*env.python) : std::nullopt;
  if (!have || release.python.empty()) return true;
  std::string minor = std::to_string(have->part(0)) + "." + std::to_string(have->part(1));
  for (std::string_view one : split(release.python, ' '))
    if (one == minor) return true;
  return false;
}

bool python_fits(const Input& input, const knowledge::WheelVariant& wheel,
                 const facts::PythonEnv* env) {
  const knowledge::TorchRelease* release = input.knowledge.find_torch(wheel.torch);
  return env == nullptr || release == nullptr || has_python(*release, *env);
}

bool project_fits(const Input& input, const knowledge::WheelVariant& wheel,
                  const facts::PythonEnv* env) {
  const knowledge::TorchRelease* release = input.knowledge.find_torch(wheel.torch);
  return env == nullptr || release == nullptr || suits_project(*env, *release);
}

// torchaudio ended with torch 2.11, and its last release goes with no later torch.
bool partners_fit(const Input& input, const knowledge::WheelVariant& wheel,
                  const facts::PythonEnv* env) {
  const knowledge::TorchRelease* release = input.knowledge.find_torch(wheel.torch);
  return env == nullptr || release == nullptr || !release->torchaudio.empty() ||
         find_distribution(*env, "torchaudio") == nullptr;
}

// The wheel asks for no newer C library than is there; one that is not known is no reason.
bool glibc_fits(const Input& input, const knowledge::WheelVariant& wheel) {
  auto have = parse_version(input.facts.system.glibc.value_or("")),
       need = parse_version(wheel.glibc);
  if (wheel_platform(input.facts) == WheelPlatform::windows) return true;
  return !have || !need || *have >= *need;
}

}  // namespace

bool driver_runs(const Input& input, const knowledge::WheelVariant& wheel) {
  const knowledge::CudaTag* tag = input.knowledge.find_cuda_tag(wheel.tag);
  if (tag == nullptr) return false;
  auto cuda = parse_version(tag->cuda);
  auto floor = parse_version(tag->linux_min);
  // The user-mode driver's own CUDA version decides where it is known: it counts cuda-compat in,
  // and driver numbers of WSL and Jetson are of another series.
  if (input.driver_cuda && cuda && cuda->part(0) >= 11)
    return input.driver_cuda->part(0) >= cuda->part(0);
  return !input.driver || !floor || at_least(*input.driver, *floor);
}

std::vector<formats::DeviceCode> wheel_code(const knowledge::Knowledge& knowledge,
                                            std::string_view platform,
                                            const knowledge::WheelVariant& wheel) {
  std::vector<formats::DeviceCode> code;
  const knowledge::ArchSet* set = arch_set_of(knowledge, platform, wheel);
  if (set == nullptr) return code;
  for (const std::string& sm : numbers(set->sm))
    code.push_back({formats::CodeKind::cubin, sm, "", 1});
  const std::vector<std::string> ptx = numbers(set->ptx);
  if (ptx.empty()) return code;  // most wheels have none, and the search below is the costly part
  const knowledge::CudaTag* tag = knowledge.find_cuda_tag(wheel.tag);
  std::string isa = tag ? isa_of(knowledge, tag->cuda) : "";
  for (const std::string& sm : ptx) code.push_back({formats::CodeKind::ptx, sm, isa, 1});
  return code;
}

// Machine code only: a next step should not lead to a wheel that compiles itself at every first
// start.
bool wheel_serves(const Input& input, const knowledge::WheelVariant& wheel, ComputeCapability cc) {
  for (const formats::DeviceCode& code : code_of(input, wheel))
    if (code.kind == formats::CodeKind::cubin && cubin_runs(code.arch, cc, input.knowledge))
      return true;
  return false;
}

std::string python_for(const knowledge::Knowledge& knowledge, std::string_view torch) {
  const knowledge::TorchRelease* release = knowledge.find_torch(torch);
  if (release == nullptr) return {};
  // The newest is the one that most other packages lack wheels for; 3.12 is served by all.
  const Version settled{{3, 12}};
  std::optional<Version> best;
  for (std::string_view one : split(release->python, ' ')) {
    const std::optional<Version> version = parse_version(one);
    if (!version || one.empty() || one.back() == 't') continue;  // "3.13t": free-threaded
    const bool is_settled = *version <= settled;
    if (!best ||
        (is_settled ? *best > settled || *version > *best : *best > settled && *version < *best))
      best = version;
  }
  return best ? best->text() : std::string();
}

namespace {

// Of this release only what the default Python index has for Linux is known: whether PyTorch's own
// index has it for another platform is not.
bool seen_on_default_index_alone(const Input& input, const knowledge::WheelVariant& wheel) {
  const knowledge::TorchRelease* release = input.knowledge.find_torch(wheel.torch);
  return release != nullptr && release->default_linux_x86_64 == wheel.tag &&
         input.knowledge.wheels_of(wheel.torch).size() == 1;
}

// What others ask of torch; torchvision and torchaudio are changed along with it.
std::vector<TorchPin> pins_of(const facts::PythonEnv* env) {
  std::vector<TorchPin> pins = env != nullptr ? torch_pins(*env) : std::vector<TorchPin>();
  std::erase_if(pins, [](const TorchPin& pin) { return goes_with_torch(pin.package); });
  return pins;
}

// By the release that is installed, or by one that can take its place.
bool taken_by(const Input& input, const std::vector<TorchPin>& pins,
              const knowledge::WheelVariant& wheel) {
  return std::all_of(pins.begin(), pins.end(), [&](const TorchPin& pin) {
    return pin.takes(wheel.torch) ||
           can_move(input, pin.package, std::string(wheel.torch), std::string(wheel.tag));
  });
}

bool kept_by(const std::vector<TorchPin>& pins, const knowledge::WheelVariant& wheel) {
  return std::all_of(pins.begin(), pins.end(),
                     [&](const TorchPin& pin) { return pin.takes(wheel.torch); });
}

// Of the wheels with machine code for all of `ccs`; none of them: of all.
std::optional<WheelPick> best_wheel(const Input& input, const std::vector<ComputeCapability>& ccs,
                                    const facts::PythonEnv* env) {
  const knowledge::WheelVariant* best = nullptr;
  bool best_runs = false;
  // 64: the C library is new enough, 32: every installed package takes it, 16: this driver runs it,
  // 8: it exists for this Python, 4: and for all that the project is for, 2: so do the partners that
  // are installed, 1: no extension needs another release for it. What is missing is the easier to
  // change, the smaller its number.
  int best_fit = 0;
  const std::vector<TorchPin> pins = pins_of(env);
  const std::string installed = env != nullptr ? torch_build_of(input, *env).release : "";
  const WheelPlatform platform = wheel_platform(input.facts);
  const bool needs_index = platform == WheelPlatform::windows || platform == WheelPlatform::unknown;
  auto better = [&](const knowledge::WheelVariant& wheel, int fit) {
    if (best == nullptr || fit != best_fit) return best == nullptr || fit > best_fit;
    // The smallest change: what was built against this release still loads.
    if ((wheel.torch == installed) != (best->torch == installed)) return wheel.torch == installed;
    auto mine = parse_version(wheel.torch), theirs = parse_version(best->torch);
    if (!mine || !theirs || *mine != *theirs) return mine && (!theirs || *mine > *theirs);
    // Of one release the variant of the default Python index is the best tested one; else the
    // highest CUDA.
    const knowledge::TorchRelease* release = input.knowledge.find_torch(wheel.torch);
    if (release != nullptr && release->default_linux_x86_64 == best->tag) return false;
    if (release != nullptr && release->default_linux_x86_64 == wheel.tag) return true;
    return wheel.tag > best->tag;
  };
  for (const knowledge::WheelVariant& wheel : input.knowledge.wheel_variants) {
    bool serves = std::all_of(ccs.begin(), ccs.end(),
                              [&](ComputeCapability cc) { return wheel_serves(input, wheel, cc); });
    if (!serves || (needs_index && seen_on_default_index_alone(input, wheel))) continue;
    // Some variants have files for Linux alone; a text that does not say where it comes from may be
    // of Windows.
    if (needs_index && arch_set_of(input.knowledge, "windows_amd64", wheel) == nullptr) continue;
    bool runs = driver_runs(input, wheel);
    const int fit = (glibc_fits(input, wheel) ? 64 : 0) + (taken_by(input, pins, wheel) ? 32 : 0) +
                    (runs ? 16 : 0) + (python_fits(input, wheel, env) ? 8 : 0) +
                    (project_fits(input, wheel, env) ? 4 : 0) +
                    (partners_fit(input, wheel, env) ? 2 : 0) + (kept_by(pins, wheel) ? 1 : 0);
    if (!better(wheel, fit)) continue;
    best = &wheel;
    best_runs = runs;
    best_fit = fit;
  }
  if (best == nullptr) return std::nullopt;
  WheelPick pick{std::string(best->torch), std::string(best->tag), !best_runs, {}};
  if ((best_fit & 8) == 0) pick.python = python_for(input.knowledge, pick.torch);
  return pick;
}

}  // namespace

std::optional<WheelPick> pick_wheel(const Input& input, const std::vector<ComputeCapability>& ccs,
                                    const facts::PythonEnv* env) {
  if (ccs.empty()) return std::nullopt;
  return best_wheel(input, ccs, env);
}

std::optional<WheelPick> pick_wheel_for_any(const Input& input, const facts::PythonEnv* env) {
  return best_wheel(input, {}, env);
}

std::optional<WheelPick> pick_cpu_wheel(const Input& input, const facts::PythonEnv& env) {
  std::optional<WheelPick> best;
  for (const knowledge::TorchRelease& release : input.knowledge.torch_releases) {
    const auto version = parse_version(release.version);
    if (!version || !has_python(release, env) || !suits_project(env, release)) continue;
    if (!best || *version > *parse_version(best->torch))
      best = WheelPick{std::string(release.version), "cpu", false, {}};
  }
  return best;
}

bool driver_precedes_gpu(const Input& input, const std::vector<ComputeCapability>& ccs) {
  if (!input.driver || is_jetson(input.facts)) return false;
  return std::any_of(ccs.begin(), ccs.end(), [&](ComputeCapability cc) {
    const knowledge::DriverWindow* window = input.knowledge.find_window(cc);
    return window != nullptr && input.driver->part(0) < window->first_branch;
  });
}

std::optional<WheelPick> pick_wheel_for_machine(const Input& input, const facts::PythonEnv* env) {
  std::vector<ComputeCapability> ccs;
  for (const GpuView& gpu : input.gpus)
    if (gpu.cc) ccs.push_back(*gpu.cc);
  return pick_wheel(input, ccs, env);
}

std::vector<formats::DeviceCode> table_code(const Input& input, const std::string& release,
                                            const std::string& tag) {
  for (const knowledge::WheelVariant* wheel : input.knowledge.wheels_of(release))
    if (wheel->tag == tag) return code_of(input, *wheel);
  return {};
}

}  // namespace cufit::checks
