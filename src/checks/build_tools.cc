// SPDX-License-Identifier: Apache-2.0
// Would the CUDA compiler of this machine build an extension for torch? torch.utils.cpp_extension
// refuses another CUDA major and only warns of another minor. A note and never more: running torch
// needs no toolkit at all.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/torch_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {

std::vector<Finding> check_build_tools(const Input& input) {
  const facts::PythonEnv* env = main_env(input.facts);
  // The first toolkit is the one that a build would take (CUDA_HOME, nvcc on PATH,
  // /usr/local/cuda).
  if (env == nullptr || !has_torch(*env) || input.facts.toolkits.empty()) return {};
  const facts::Toolkit& toolkit = input.facts.toolkits.front();
  const TorchBuild build = torch_build_of(input, *env);
  if (build.kind != "cuda" || !build.cuda || !build.cuda_exact || !toolkit.nvcc || !toolkit.version)
    return {};
  const std::optional<Version> have = parse_version(*toolkit.version);
  if (!have || have->part(0) == build.cuda->part(0)) return {};
  Finding made = finding("ext_build_cuda_mismatch", Severity::note, subject_of(*env));
  if (env->installer == "conda") made.variant = "conda";
  made.args = {{"path", *toolkit.nvcc},
               {"have", *toolkit.version},
               {"need", build.cuda->text()},
               {"torch", build.release}};
  made.evidence = {seen(toolkit.version), seen(build.source, "CUDA " + build.cuda->text())};
  return {made};
}

}  // namespace cufit::checks
