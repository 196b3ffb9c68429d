// SPDX-License-Identifier: Apache-2.0
// Does this driver run this torch's CUDA runtime? NVIDIA's minor-version compatibility: any driver
// of the family's floor or newer runs every release of that CUDA major; only PTX compilation and
// newer calls need the driver of the toolkit itself. Comparing "CUDA Version" of nvidia-smi with
// the wheel's CUDA is the popular wrong rule.
#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/install/after_step.h"
#include "checks/install/torch_step.h"
#include "checks/torch_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

// The lowest driver: the family's floor, or the driver of that very toolkit where it is even older
// (CUDA 11.0); before CUDA 11 there are no families.
std::optional<Version> floor_of(const Input& input, const Version& cuda) {
  auto family = cuda.part(0) >= 11 ? input.knowledge.family_floor(cuda.part(0)) : std::nullopt;
  auto own = cuda.parts.size() > 1 ? input.knowledge.full_driver(cuda) : std::nullopt;
  if (!family) return own;
  return own && *own < *family ? own : family;
}

enum class Fit { ok, minor, old, unknown };

// Driver numbers speak only for Linux hosts; WSL (Windows numbers), Jetson (its own series) and an
// active cuda-compat are judged by the CUDA version of the user-mode driver.
bool number_counts(const Input& input) {
  if (!input.driver || is_wsl(input.facts) || is_jetson(input.facts)) return false;
  const facts::DriverLibrary* compat = active_compat(input);
  return compat == nullptr || !may_use_compat(input, *compat);
}

Fit judge(const Input& input, const TorchBuild& build, const std::optional<Version>& floor) {
  const Version& cuda = *build.cuda;
  bool families = cuda.part(0) >= 11;
  bool by_number = number_counts(input) && floor;
  if (by_number && !at_least(*input.driver, *floor)) return Fit::old;
  if (input.driver_cuda) {
    if (input.driver_cuda->part(0) < cuda.part(0)) return Fit::old;
    if (!families && *input.driver_cuda < cuda) return Fit::old;
    if (!build.cuda_exact || *input.driver_cuda >= cuda) return Fit::ok;
    return Fit::minor;
  }
  if (!by_number) return Fit::unknown;
  auto full = build.cuda_exact ? input.knowledge.ptx_driver(cuda) : std::nullopt;
  return full && !at_least(*input.driver, *full) ? Fit::minor : Fit::ok;
}

std::string seen_driver(const Input& input) {
  for (const Fact<std::string>* fact :
       {&input.facts.kernel.version, &input.facts.nvml.driver_version})
    if (*fact) return **fact;
  if (input.driver) return driver_text(*input.driver);
  // torch said which CUDA the driver speaks; its branch follows.
  for (const knowledge::BranchRow& row : input.knowledge.branches)
    if (input.driver_cuda && parse_version(row.cuda) == input.driver_cuda)
      return format("{} (CUDA {})", row.branch, row.cuda);
  return {};
}

// No driver as new as `floor` drives these GPUs any more.
bool gpu_left_behind(const Input& input, const std::optional<Version>& floor) {
  return floor && std::any_of(input.gpus.begin(), input.gpus.end(), [&](const GpuView& gpu) {
           const knowledge::DriverWindow* window =
               gpu.cc ? input.knowledge.find_window(*gpu.cc) : nullptr;
           return window != nullptr && window->last_branch != 0 &&
                  window->last_branch < floor->part(0);
         });
}

void fill(const Input& input, const facts::PythonEnv& env, const TorchBuild& build,
          const std::optional<Version>& floor, Finding& made) {
  auto full = build.cuda_exact ? input.knowledge.ptx_driver(*build.cuda) : std::nullopt;
  std::string major = std::to_string(build.cuda->part(0));
  // A text that names no GPU: what the driver runs, it runs on all that this driver drives.
  const bool gpu_known = std::any_of(input.gpus.begin(), input.gpus.end(),
                                     [](const GpuView& gpu) { return gpu.cc.has_value(); });
  TorchStep step;
  if (gpu_known || input.facts.origin == "text") step = torch_step(input, env);
  const bool runs = step.pick && !step.pick->needs_newer_driver && step.pinner.empty();
  made.args = {{"have", seen_driver(input)},
               {"need", floor ? driver_text(*floor) : ""},
               {"full", full ? driver_text(*full) : ""},
               {"cuda", build.cuda->text()},
               {"cuda_major", major},
               {"driver_cuda", input.driver_cuda ? input.driver_cuda->text() : ""},
               {"torch", build.release},
               {"tag", build.tag},
               {"install", runs ? step.command : ""},
               {"install_torch", step.pick ? step.pick->torch + "+" + step.pick->tag : ""}};
  const DriverNeed need = driver_need(input, build.cuda);
  add_driver_args(need, made.args);
  made.change = runs ? change_of(env, step) : driver_change(need.branch);
  if (input.driver) made.evidence.push_back(seen(input.driver_source, seen_driver(input)));
  if (input.driver_cuda)
    made.evidence.push_back(seen(input.driver_cuda_source, "CUDA " + input.driver_cuda->text()));
  made.evidence.push_back(seen(build.source, "CUDA " + build.cuda->text()));
  if (floor) {
    made.evidence.push_back(
        table_says("data/drivers.toml", "CUDA " + major + ".x: driver >= " + driver_text(*floor)));
  }
}

bool compat_helps(const Input& input, const Version& cuda) {
  std::vector<CompatCandidate> gpus;
  for (const GpuView& gpu : input.gpus) gpus.push_back({compat_gpu(gpu), gpu.cc});
  return input.driver && forward_compat_helps(gpus, *input.driver, cuda, input.knowledge);
}

// No driver at all is another check's finding; here "unknown" means that a driver may be there and
// was not seen.
std::optional<Finding> without_driver(const Input& input, const facts::PythonEnv& env,
                                      const TorchBuild& build,
                                      const std::optional<Version>& floor) {
  const Fact<std::string>& module = input.facts.kernel.version;
  if (input.gpus.empty() || (!module && module.why == WhyNot::not_present && !is_wsl(input.facts)))
    return std::nullopt;
  Finding made =
      cannot_tell("driver_too_old", subject_of(env), "driver version: " + why_missing(module));
  fill(input, env, build, floor, made);
  if (input.what_if && floor) made.variant = "unknown_driver";
  made.change.reset();
  return made;
}

}  // namespace

std::vector<Finding> check_driver_floor(const Input& input) {
  std::vector<Finding> found;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    TorchBuild build = torch_build_of(input, *env);
    if (build.kind != "cuda") continue;
    if (!build.cuda) {
      if (!input.gpus.empty())
        found.push_back(cannot_tell("driver_too_old", subject_of(*env),
                                    "CUDA version of torch: " + why_missing(env->torch.cuda)));
      continue;
    }
    std::optional<Version> floor = floor_of(input, *build.cuda);
    Fit fit = judge(input, build, floor);
    if (fit == Fit::unknown) {
      if (auto made = without_driver(input, *env, build, floor)) found.push_back(std::move(*made));
      continue;
    }
    if (fit == Fit::ok) continue;
    bool old = fit == Fit::old;
    Finding made = finding(old ? "driver_too_old" : "driver_minor_compat",
                           old ? Severity::error : Severity::note, subject_of(*env));
    fill(input, *env, build, floor, made);
    if (old && is_wsl(input.facts))
      made.variant = "wsl";
    else if (old && gpu_left_behind(input, floor))
      made.variant = made.args["install"].empty() ? "last_driver_none" : "last_driver";
    else if (old && build.cuda_exact && compat_helps(input, *build.cuda))
      made.variant = made.args["install"].empty() ? "compat_only" : "compat";
    else if (old && made.args["install"].empty())
      made.variant = "no_wheel";
    // Windows numbers its drivers otherwise; of an unknown driver nothing is changed.
    if (!old || made.variant == "wsl" || made.variant == "last_driver_none") made.change.reset();
    const bool may_update = made.variant != "last_driver" && made.variant != "last_driver_none";
    if (old && may_update && !is_wsl(input.facts) && in_container(input.facts))
      made.variant += made.variant.empty() ? "container" : ".container";
    made.evidence.push_back(
        rule_says(old ? "minor-version compatibility starts at the family's floor"
                      : "minor-version compatibility within one CUDA major; not for PTX"));
    found.push_back(std::move(made));
  }
  return found;
}

}  // namespace cufit::checks
