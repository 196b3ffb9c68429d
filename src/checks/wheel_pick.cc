// SPDX-License-Identifier: Apache-2.0
#include "checks/wheel_pick.h"

#include <algorithm>

#include "base/format.h"
#include "checks/code_match.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

std::string_view platform_of(const Input& input) {
  bool arm = input.facts.system.architecture && *input.facts.system.architecture == "aarch64";
  return arm ? "linux_aarch64" : "linux_x86_64";
}

const knowledge::ArchSet* arch_set_of(const knowledge::Knowledge& knowledge,
                                      std::string_view platform,
                                      const knowledge::WheelVariant& wheel) {
  // The variant row names the x86-64 set; the aarch64 build of the same tag has its own, found by
  // its tag.
  const knowledge::ArchSet* fallback = nullptr;
  for (const knowledge::ArchSet& set : knowledge.arch_sets) {
    if (set.platform != platform) continue;
    if (set.id == wheel.arch_set) return &set;
    // "cu130" -> "a-cu13", "cu126" -> "a-cu126"
    std::string_view name = set.id.size() > 2 ? set.id.substr(2) : "";
    if (platform == "linux_aarch64" && !name.empty() && starts_with(wheel.tag, name))
      fallback = &set;
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

// Wheels exist per Python minor; an unknown Python is no reason against one.
bool python_fits(const Input& input, const knowledge::WheelVariant& wheel,
                 const host::PythonEnv* env) {
  auto have = env != nullptr && env->python ? parse_version(*env->python) : std::nullopt;
  const knowledge::TorchRelease* release = input.knowledge.find_torch(wheel.torch);
  if (!have || release == nullptr || release->python.empty()) return true;
  std::string minor = std::to_string(have->part(0)) + "." + std::to_string(have->part(1));
  for (std::string_view one : split(release->python, ' '))
    if (one == minor) return true;
  return false;
}

}  // namespace

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
    if (code.kind == formats::CodeKind::cubin && cubin_runs(code.arch, cc)) return true;
  return false;
}

std::optional<WheelPick> pick_wheel(const Input& input, const std::vector<ComputeCapability>& ccs,
                                    const host::PythonEnv* env) {
  const knowledge::WheelVariant* best = nullptr;
  bool best_runs = false;
  int best_fit = 0;  // 2: this driver runs it, 1: it exists for this Python
  auto better = [&](const knowledge::WheelVariant& wheel, int fit) {
    if (best == nullptr || fit != best_fit) return best == nullptr || fit > best_fit;
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
    if (!serves || ccs.empty()) continue;
    bool runs = driver_runs(input, wheel);
    int fit = (runs ? 2 : 0) + (python_fits(input, wheel, env) ? 1 : 0);
    if (!better(wheel, fit)) continue;
    best = &wheel;
    best_runs = runs;
    best_fit = fit;
  }
  if (best == nullptr) return std::nullopt;
  return WheelPick{std::string(best->torch), std::string(best->tag), !best_runs};
}

std::optional<WheelPick> pick_wheel_for_machine(const Input& input, const host::PythonEnv* env) {
  std::vector<ComputeCapability> ccs;
  for (const GpuView& gpu : input.gpus)
    if (gpu.cc) ccs.push_back(*gpu.cc);
  return pick_wheel(input, ccs, env);
}

std::string install_text(const host::PythonEnv& env, const std::optional<WheelPick>& pick) {
  return pick ? install_command(env, pick->torch, pick->tag) : std::string();
}

std::vector<formats::DeviceCode> table_code(const Input& input, const std::string& release,
                                            const std::string& tag) {
  for (const knowledge::WheelVariant* wheel : input.knowledge.wheels_of(release))
    if (wheel->tag == tag) return code_of(input, *wheel);
  return {};
}

}  // namespace cufit::checks
