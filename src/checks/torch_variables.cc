// SPDX-License-Identifier: Apache-2.0
// Environment variables that change what torch or the driver does without saying so: an allocator
// setting under a name that this torch does not read, and the switches that forbid machine code or
// PTX.
#include "base/format.h"
#include "checks/code_match.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

constexpr const char* k_new_name = "PYTORCH_ALLOC_CONF";
constexpr const char* k_old_name = "PYTORCH_CUDA_ALLOC_CONF";

// PYTORCH_ALLOC_CONF exists since torch 2.9 (release notes); 2.9.1 reads it, but drops
// expandable_segments on CUDA (pytorch issue 183387), 2.11 does not.
std::string ignored_variant(const Version& torch, const std::string& value) {
  if (torch < *parse_version("2.9")) return "unknown_name";
  const bool drops = torch < *parse_version("2.11") && contains(value, "expandable_segments:True");
  return drops ? "expandable_segments" : "";
}

Severity jit_severity(const Input& input, const facts::Binary& library, const GpuView& gpu,
                      formats::CodeKind dropped, std::string& variant) {
  std::vector<formats::DeviceCode> rest;
  for (const formats::DeviceCode& code : library.device_code) {
    if (code.kind != dropped) rest.push_back(code);
  }
  const CodeMatch match = match_code(rest, *gpu.cc, input.driver_cuda, input.knowledge);
  if (match.match == Match::cubin) return Severity::ok;
  if (match.match == Match::ptx || match.match == Match::ptx_unknown) {
    variant = "slow";
    return Severity::warning;
  }
  variant = "";
  return Severity::error;
}

bool switched_on(const facts::Facts& facts, const char* name) {
  const std::string value = variable(facts, name);
  return !value.empty() && value != "0";
}

void forced_jit(const Input& input, const facts::PythonEnv& env, std::vector<Finding>& findings) {
  const facts::Binary* library = torch_main_library(env);
  if (library == nullptr || library->device_code.empty()) return;
  for (const char* name : {"CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT"}) {
    if (!switched_on(input.facts, name)) continue;
    const bool force = std::string_view(name) == "CUDA_FORCE_PTX_JIT";
    for (const GpuView& gpu : input.gpus) {
      if (!gpu.cc) continue;
      std::string variant;
      const Severity severity = jit_severity(
          input, *library, gpu, force ? formats::CodeKind::cubin : formats::CodeKind::ptx, variant);
      // Without the switch the GPU would have no code either: then the wheel is the cause, not the
      // variable.
      const CodeMatch free =
          match_code(library->device_code, *gpu.cc, input.driver_cuda, input.knowledge);
      if (severity == Severity::ok || free.match == Match::none || free.match == Match::ptx_too_new)
        continue;
      Finding made = finding("ptx_jit_forced", severity, subject_of(gpu));
      made.variant = force ? variant : "disabled";
      made.args["name"] = name;
      made.args["gpu"] = gpu.label;
      made.args["env"] = env.path;
      made.args["file"] = library->path;
      made.evidence.push_back({"env", name, variable(input.facts, name)});
      made.evidence.push_back({"file", library->path, ""});
      findings.push_back(std::move(made));
    }
  }
}

}  // namespace

std::vector<Finding> check_torch_variables(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    const TorchBuild build = torch_build_of(input, *env);
    if (build.kind != "cuda") continue;
    forced_jit(input, *env, findings);
    const std::optional<Version> release = parse_version(build.release);
    const std::string value = variable(input.facts, k_new_name);
    if (!release || value.empty() || has_variable(input.facts, k_old_name)) continue;
    const std::string variant = ignored_variant(*release, value);
    if (variant.empty()) continue;
    Finding made = finding("alloc_conf_ignored", Severity::warning, subject_of(*env));
    made.variant = variant;
    made.args["torch"] = build.release;
    made.args["value"] = value;
    made.evidence.push_back({"env", k_new_name, value});
    made.evidence.push_back(seen(env->torch.version));
    findings.push_back(std::move(made));
  }
  return findings;
}

}  // namespace cufit::checks
