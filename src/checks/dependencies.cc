// SPDX-License-Identifier: Apache-2.0
// General packages that are newer than this torch was compiled for, and packages whose compiled
// CUDA part is not there for torch's CUDA.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/install/after_step.h"
#include "checks/install/torch_command.h"
#include "checks/torch_env.h"

namespace cufit::checks {

bool takes_numpy2(const Version& torch) { return torch >= *parse_version("2.3"); }

namespace {

void judge_numpy(const Input& input, const facts::PythonEnv& env, const Version& torch,
                 const std::string& release, std::vector<Finding>& findings) {
  const facts::Distribution* numpy = find_distribution(env, "numpy");
  if (numpy == nullptr || major_of(numpy->version) < 2 || takes_numpy2(torch)) return;
  Finding made = finding("dependency_too_new", Severity::warning, subject_of(env));
  made.args["package"] = "numpy";
  made.args["have"] = numpy->version;
  made.args["torch"] = release;
  made.args["need"] = "numpy<2";
  made.args["command"] = install_packages(input, env, {"numpy<2"});
  made.change = packages_change(env, {"numpy<2"});
  made.evidence.push_back({"file", numpy->location, numpy->version});
  made.evidence.push_back(seen(env.torch.version));
  findings.push_back(std::move(made));
}

// torch of the project's own conda channel ("py3.11_cuda12.1_cudnn8.9.2_0") links MKL dynamically
// and needs a symbol that MKL 2024.1 dropped (pytorch issue 123097). conda-forge builds and wheels
// do not.
void judge_mkl(const Input& input, const facts::PythonEnv& env, const std::string& release,
               std::vector<Finding>& findings) {
  const facts::Distribution* pytorch = nullptr;
  for (const facts::Distribution* found : find_distributions(env, "pytorch")) {
    if (found->kind == "conda-meta" && starts_with(found->tag, "py3.")) pytorch = found;
  }
  const facts::Distribution* mkl = find_distribution(env, "mkl");
  if (pytorch == nullptr || mkl == nullptr) return;
  const std::optional<Version> version = parse_version(mkl->version);
  if (!version || *version < *parse_version("2024.1")) return;
  Finding made = finding("dependency_too_new", Severity::warning, subject_of(env));
  made.variant = "mkl";
  made.args["package"] = "mkl";
  made.args["have"] = mkl->version;
  made.args["torch"] = release;
  made.args["need"] = "mkl=2024.0";
  made.args["command"] = install_packages(input, env, {"mkl==2024.0"});
  made.change = packages_change(env, {"mkl==2024.0"});
  made.evidence.push_back({"file", mkl->location, mkl->version});
  made.evidence.push_back({"file", pytorch->location, pytorch->tag});
  findings.push_back(std::move(made));
}

// libbitsandbytes_cuda126.so -> 126; 0 for others
uint32_t cuda_of_library(std::string_view name) {
  constexpr std::string_view prefix = "libbitsandbytes_cuda";
  if (!starts_with(name, prefix)) return 0;
  uint32_t number = 0;
  for (char c : name.substr(prefix.size())) {
    if (c < '0' || c > '9' || number > 9999) break;
    number = number * 10 + uint32_t(c - '0');
  }
  return number;
}

void judge_bitsandbytes(const Input& input, const facts::PythonEnv& env, const TorchBuild& build,
                        std::vector<Finding>& findings) {
  const facts::Distribution* package = find_distribution(env, "bitsandbytes");
  if (package == nullptr || !build.cuda || !build.cuda_exact) return;
  uint32_t wanted = build.cuda->part(0) * 10 + build.cuda->part(1);
  const std::string forced = variable(input.facts, "BNB_CUDA_VERSION");
  if (!forced.empty()) wanted = parse_version(forced).value_or(Version{{wanted}}).part(0);
  std::vector<std::string> have;
  bool same_major = false;
  for (const facts::Binary& binary : env.binaries) {
    const uint32_t cuda = cuda_of_library(file_name(binary.path));
    if (cuda == 0) continue;
    if (cuda == wanted) return;
    same_major = same_major || cuda / 10 == wanted / 10;
    have.push_back(std::to_string(cuda / 10) + "." + std::to_string(cuda % 10));
  }
  // A list of packages says nothing of their libraries.
  if (env.binaries.empty()) return;
  // 0.50 falls back to another library of the same CUDA major (its cextension.py); earlier releases
  // want the exact one.
  const std::optional<Version> version = parse_version(package->version);
  if (same_major && forced.empty() && version && *version >= *parse_version("0.50")) return;
  Finding made = finding("ext_binary_missing", Severity::error, subject_of(env));
  if (!forced.empty()) made.variant = "forced";
  made.args["package"] = "bitsandbytes";
  made.args["version"] = package->version;
  made.args["name"] = format("libbitsandbytes_cuda{}.so", wanted);
  made.args["torch"] = build.release;
  made.args["cuda"] = build.cuda->text();
  std::sort(have.begin(), have.end());
  made.args["have"] = have.empty() ? "-" : short_list(have, 14);
  made.args["command"] = install_packages(input, env, {"bitsandbytes"}, InstallKind::update);
  made.evidence.push_back({"file", package->location, package->version});
  made.evidence.push_back(seen(build.source, build.cuda->text()));
  if (!forced.empty()) made.evidence.push_back({"env", "BNB_CUDA_VERSION", forced});
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_dependencies(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    const TorchBuild build = torch_build_of(input, *env);
    const std::optional<Version> release = parse_version(build.release);
    if (release) judge_numpy(input, *env, *release, build.release, findings);
    judge_mkl(input, *env, build.release, findings);
  }
  return findings;
}

std::vector<Finding> check_extension_binaries(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    const TorchBuild build = torch_build_of(input, *env);
    if (build.kind == "cuda") judge_bitsandbytes(input, *env, build, findings);
  }
  return findings;
}

}  // namespace cufit::checks
