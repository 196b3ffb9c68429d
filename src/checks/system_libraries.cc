// SPDX-License-Identifier: Apache-2.0
// Are glibc and libstdc++ new enough for the binaries of an environment? What a binary needs stands
// in its own .gnu.version_r. glibc is always the system's; libstdc++ is the environment's own under
// conda.
#include "base/format.h"
#include "base/shell_word.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/install/torch_step.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

struct Need {
  std::optional<Version> version;
  const facts::Binary* binary = nullptr;
  size_t count = 0;  // binaries that need more than there is
};

Need highest(const facts::PythonEnv& env, std::string facts::Binary::*member,
             const std::optional<Version>& have) {
  Need need;
  for (const facts::Binary& binary : env.binaries) {
    const std::optional<Version> version = parse_version(binary.*member);
    if (!version) continue;
    if (have && *version > *have) ++need.count;
    if (!need.version || *version > *need.version) {
      need.version = version;
      need.binary = &binary;
    }
  }
  return need;
}

Finding too_old(const char* id, const facts::PythonEnv& env, const Need& need,
                const std::string& have, const std::string& wanted) {
  Finding made = finding(id, Severity::error, subject_of(env));
  made.args["have"] = have;
  made.args["need"] = wanted;
  made.args["file"] = need.binary->path;
  made.args["package"] = need.binary->package.empty() ? std::string(file_name(need.binary->path))
                                                      : need.binary->package;
  made.args["count"] = std::to_string(need.count);
  made.args["env"] = env.path;
  made.evidence.push_back({"file", need.binary->path, wanted});
  return made;
}

// Of torch the table knows the newest release whose wheel this C library takes.
void add_older_torch(const Input& input, const facts::PythonEnv& env, const Version& glibc,
                     Finding& made) {
  if (made.args["package"] != "torch") return;
  const TorchStep step = torch_step(input, env);
  if (!step.pick || step.pick->needs_newer_driver || !step.blocked.empty()) return;
  for (const knowledge::WheelVariant* wheel : input.knowledge.wheels_of(step.pick->torch)) {
    const std::optional<Version> wanted = parse_version(wheel->glibc);
    if (wheel->tag != step.pick->tag || !wanted || *wanted > glibc) continue;
    made.variant = "release";
    made.args["command"] = step.command;
    made.args["install_torch"] = step.pick->torch + "+" + step.pick->tag;
    made.change = change_of(env, step);
    return;
  }
}

void judge_glibc(const Input& input, const facts::PythonEnv& env, std::vector<Finding>& findings) {
  const facts::SystemFacts& system = input.facts.system;
  const std::optional<Version> have = system.glibc ? parse_version(*system.glibc) : std::nullopt;
  const Need need = highest(env, &facts::Binary::glibc, have);
  if (!need.version) return;
  if (system.libc && *system.libc == "musl") {
    Finding made = too_old("glibc_too_old", env, need, "musl", "GLIBC_" + need.version->text());
    made.variant = "musl";
    made.evidence.push_back(seen(system.libc));
    findings.push_back(std::move(made));
    return;
  }
  if (!have) {
    if (failed(system.glibc))
      findings.push_back(cannot_tell("glibc_too_old", subject_of(env), why_missing(system.glibc)));
    return;
  }
  if (*need.version <= *have) return;
  Finding made = too_old("glibc_too_old", env, need, "GLIBC_" + *system.glibc,
                         "GLIBC_" + need.version->text());
  made.args["distribution"] = system.distribution.value_or("?");
  made.evidence.push_back(seen(system.glibc));
  add_older_torch(input, env, *have, made);
  findings.push_back(std::move(made));
}

// libstdc++.so.6.0.N exports GLIBCXX_3.4.N (GCC's ABI history, 6.0.9 and newer).
std::optional<Version> glibcxx_of_file(std::string_view version) {
  if (!starts_with(version, "6.0.")) return std::nullopt;
  return parse_version("3.4." + std::string(version.substr(4)));
}

struct Libstdcxx {
  std::optional<Version> version;
  Evidence from;
  std::string why_unknown;
};

Libstdcxx loaded_libstdcxx(const Input& input, const facts::PythonEnv& env) {
  for (const facts::LoadedLibrary& library : env.loads) {
    if (library.name != "libstdc++.so.6" || library.path.empty()) continue;
    const std::optional<Version> version = glibcxx_of_file(library.version);
    if (version) return {version, {"file", library.path, "GLIBCXX_" + version->text()}, ""};
    if (library.inside)
      return {std::nullopt, {"file", library.path, ""}, library.path + ": version not known"};
  }
  const Fact<std::string>& system = input.facts.system.glibcxx;
  if (system) return {parse_version(*system), seen(system), ""};
  return {std::nullopt, seen(system), failed(system) ? why_missing(system) : ""};
}

void judge_libstdcxx(const Input& input, const facts::PythonEnv& env,
                     std::vector<Finding>& findings) {
  const Libstdcxx have = loaded_libstdcxx(input, env);
  const Need need = highest(env, &facts::Binary::glibcxx, have.version);
  if (!need.version) return;
  if (!have.version) {
    if (!have.why_unknown.empty())
      findings.push_back(cannot_tell("libstdcxx_too_old", subject_of(env), have.why_unknown));
    return;
  }
  if (*need.version <= *have.version) return;
  Finding made = too_old("libstdcxx_too_old", env, need, "GLIBCXX_" + have.version->text(),
                         "GLIBCXX_" + need.version->text());
  if (env.kind == "conda") {
    made.variant = "conda";
    made.args["command"] =
        format("conda install -p {} -c conda-forge libstdcxx", shell_word(env.path));
  }
  made.args["library"] = have.from.detail;
  made.evidence.push_back(have.from);
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_system_libraries(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    judge_glibc(input, *env, findings);
    judge_libstdcxx(input, *env, findings);
  }
  return findings;
}

}  // namespace cufit::checks
