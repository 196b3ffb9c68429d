// SPDX-License-Identifier: Apache-2.0
// Which libcuda would load, and does it belong to the loaded kernel module? A cuda-compat library
// on hardware that refuses it (804), a toolkit's stub, a stale or foreign copy in front (803), or
// an update without a reboot.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/torch_checks.h"
#include "checks/torch_env.h"
#include "checks/install/torch_command.h"
#include "checks/wheel_pick.h"

namespace cufit::checks {

namespace {

constexpr int k_cuda_stub_library = 34, k_cuda_driver_mismatch = 803, k_cuda_compat_refused = 804;
constexpr int k_nvml_lib_rm_mismatch = 18;

bool answered(const Fact<int>& fact, int code) { return fact && *fact == code; }

std::string module_text(const Input& input) { return input.facts.kernel.version.value_or(""); }

void add_library(const facts::DriverLibrary* library, Finding& made) {
  if (library == nullptr) return;
  made.args["path"] = library->path;
  made.args["have"] = library->version;
  made.evidence.push_back(
      {"file", library->path,
       library->version + " (" + library->origin + ", " + library->found_by + ")"});
}

// The compat library hides a second obstacle: taken away, it leaves a driver that is too old for
// this torch.
void add_old_driver(const Input& input, Finding& made) {
  const facts::PythonEnv* env = main_env(input.facts);
  if (env == nullptr || !input.driver || is_wsl(input.facts) || is_jetson(input.facts)) return;
  TorchBuild build = torch_build_of(input, *env);
  if (!build.cuda) return;
  auto floor = input.knowledge.family_floor(build.cuda->part(0));
  if (!floor || at_least(*input.driver, *floor)) return;
  Input without = input;  // what the compat library said of CUDA goes with it
  without.driver_cuda = input.knowledge.driver_cuda(*input.driver);
  std::optional<WheelPick> pick = pick_wheel_for_machine(without, env);
  if (!pick || pick->needs_newer_driver) return;
  made.variant = "old_driver";
  made.args["cuda"] = build.cuda->text();
  made.args["install"] = install_text(input, *env, pick);
}

std::vector<Finding> judge_compat(const Input& input, const facts::DriverLibrary* compat) {
  const Fact<int>& init = input.facts.cuda.init_result;
  bool refused = answered(init, k_cuda_compat_refused);
  if (!refused && (compat == nullptr || init))
    return {};  // cuInit answered something else: not this cause
  const GpuView* blocked = nullptr;
  const GpuView* unsure = nullptr;
  for (const GpuView& gpu : input.gpus) {
    CompatGpu kind = compat_gpu(gpu);
    if (kind == CompatGpu::not_eligible && blocked == nullptr) blocked = &gpu;
    if (kind == CompatGpu::unknown && unsure == nullptr) unsure = &gpu;
  }
  if (!refused && blocked == nullptr && unsure == nullptr) return {};
  Finding made = finding("compat_libcuda_unsupported", Severity::error, k_machine);
  if (!refused && blocked == nullptr) {
    made.severity = Severity::unknown;
    made.unknown_because =
        unsure->label +
        ": no list says whether cuda-compat is allowed on it, and cuInit was not asked";
  }
  const GpuView* gpu = blocked != nullptr ? blocked : unsure;
  made.args = {{"gpu", gpu != nullptr ? gpu->name : ""},
               {"need", module_text(input)},
               {"path", ""},
               {"have", ""}};
  if (refused) made.evidence.push_back(seen(init));
  add_library(compat != nullptr ? compat : loaded_driver_library(input.facts, "libcuda.so.1"),
              made);
  if (made.severity == Severity::error) add_old_driver(input, made);
  made.args["compat_cuda"] = compat != nullptr ? compat->compat_cuda : "";
  if (gpu != nullptr && gpu->row != nullptr)
    made.evidence.push_back(
        table_says("data/gpus.toml", gpu->name + ": " + std::string(gpu->row->segment)));
  made.evidence.push_back(
      rule_says("forward compatibility works on data-centre GPUs and Jetson only"));
  return {made};
}

bool same_driver(const std::string& a, const std::string& b) {
  auto x = parse_version(a), y = parse_version(b);
  // "1.1" (WSL, Jetson) and the like are not driver numbers.
  if (!x || !y || x->part(0) < 100 || y->part(0) < 100) return true;
  return *x == *y;
}

bool has_matching_copy(const Input& input) {
  const auto& all = input.facts.driver_libraries;
  return std::any_of(all.begin(), all.end(), [&](const facts::DriverLibrary& library) {
    return library.soname == "libcuda.so.1" && !library.loads && parse_version(library.version) &&
           library.origin != "stub" && same_driver(library.version, module_text(input));
  });
}

// Both versions of the host itself: an update without a reboot. Otherwise a foreign library lies in
// front.
Finding mismatch(const Input& input, const facts::DriverLibrary* library) {
  bool foreign = in_container(input.facts) || is_wsl(input.facts) || has_matching_copy(input) ||
                 (library != nullptr && library->origin == "compat");
  Finding made =
      finding(foreign ? "libcuda_shadowed" : "driver_lib_mismatch", Severity::error, k_machine);
  made.args = {{"have", ""}, {"path", ""}, {"need", module_text(input)}};
  if (input.facts.kernel.version) made.evidence.push_back(seen(input.facts.kernel.version));
  add_library(library, made);
  return made;
}

std::optional<Finding> judge_wsl(const Input& input, const facts::DriverLibrary& loaded) {
  bool own = loaded.origin == "wsl" || contains(loaded.realpath + loaded.path, "/usr/lib/wsl/");
  if (own) return std::nullopt;
  Finding made = finding("libcuda_shadowed", Severity::error, k_machine);
  made.variant = "wsl";
  made.args["need"] = "/usr/lib/wsl/lib";
  add_library(&loaded, made);
  made.evidence.push_back(seen(input.facts.system.wsl));
  return made;
}

std::optional<Finding> judge_library(const Input& input, const facts::DriverLibrary* loaded,
                                     bool compat_reported) {
  const facts::Facts& facts = input.facts;
  const Fact<int>& init = facts.cuda.init_result;
  bool stub =
      (loaded != nullptr && loaded->origin == "stub") || answered(init, k_cuda_stub_library);
  if (stub) {
    Finding made = finding("libcuda_shadowed", Severity::error, k_machine);
    made.variant = "stub";
    made.args = {{"have", ""}, {"path", ""}, {"need", module_text(input)}};
    if (init) made.evidence.push_back(seen(init));
    add_library(loaded, made);
    return made;
  }
  bool said = answered(init, k_cuda_driver_mismatch) ||
              answered(facts.nvml.init_result, k_nvml_lib_rm_mismatch);
  if (said) {
    const facts::DriverLibrary* named = loaded;
    if (!answered(init, k_cuda_driver_mismatch) &&
        (loaded == nullptr || same_driver(loaded->version, module_text(input))))
      named = loaded_driver_library(facts, "libnvidia-ml.so.1");
    Finding made = mismatch(input, named);
    if (answered(init, k_cuda_driver_mismatch)) made.evidence.push_back(seen(init));
    if (answered(facts.nvml.init_result, k_nvml_lib_rm_mismatch))
      made.evidence.push_back(seen(facts.nvml.init_result));
    return made;
  }
  if (loaded == nullptr || answered(init, 0))
    return std::nullopt;  // a libcuda that starts is the right one
  if (is_wsl(facts)) return judge_wsl(input, *loaded);
  if (compat_reported || !facts.kernel.version || is_jetson(facts)) return std::nullopt;
  if (loaded->origin == "compat") {
    if (may_use_compat(input, *loaded)) return std::nullopt;
    Finding made = mismatch(input, loaded);
    made.variant = "compat_branch";
    made.args["branches"] = join(loaded->compat_drivers, ", ");
    if (loaded->compat_drivers.empty())
      return std::nullopt;  // its note was not read: nothing proven
    return made;
  }
  if (loaded->version.empty() || same_driver(loaded->version, module_text(input)))
    return std::nullopt;
  return mismatch(input, loaded);
}

}  // namespace

std::vector<Finding> check_compat(const Input& input) {
  const facts::DriverLibrary* loaded = loaded_driver_library(input.facts, "libcuda.so.1");
  std::vector<Finding> found = judge_compat(input, active_compat(input));
  // The GPU may forbid compat; its branch list then no longer matters.
  if (auto made = judge_library(input, loaded, !found.empty())) found.push_back(std::move(*made));
  return found;
}

}  // namespace cufit::checks
