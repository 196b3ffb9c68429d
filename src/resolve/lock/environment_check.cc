// SPDX-License-Identifier: Apache-2.0
#include "resolve/lock/environment_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "checks/doctor.h"
#include "checks/evidence.h"
#include "checks/gpu_code.h"
#include "resolve/lock/lock_check.h"

namespace cufit::resolve {
namespace {

using checks::Finding;
using checks::Severity;

// What most modules are built for: single kernels for more, their a and f variants, and PTX differ
// between builds without any rule (as checks/gpu_code.cc compares a file with the table).
std::set<std::string> archs(const std::vector<formats::DeviceCode>& code) {
  uint32_t most = 0;
  for (const formats::DeviceCode& one : code) most = std::max(most, one.count);
  std::set<std::string> out;
  for (const formats::DeviceCode& one : code)
    if (one.kind == formats::CodeKind::cubin && one.count >= most / 2 && !one.arch.empty() &&
        one.arch.back() >= '0' && one.arch.back() <= '9')
      out.insert(one.arch);
  return out;
}

Finding about_environment(const char* id, Severity severity, const EnvSubject& subject,
                          std::map<std::string, std::string> args) {
  Finding out = checks::finding(id, severity, "env " + subject.one.name);
  args["class"] = subject.one.name;
  out.args = std::move(args);
  return out;
}

void check_torch(const EnvSubject& subject, std::vector<Finding>& out) {
  const facts::PythonEnv& env = *subject.env;
  const LockClass& one = subject.one;
  const std::string have = env.torch.version.value_or("");
  const size_t plus = have.find('+');
  const std::string release = have.substr(0, plus);
  const std::string local = plus == std::string::npos ? "" : have.substr(plus + 1);
  const std::string tag = local.empty() ? env.torch.variant : local;
  const std::string want = one.wheel.torch + " (" + one.wheel.tag + ")";
  if (!have.empty() && same_version(release, one.wheel.torch) &&
      (tag.empty() || tag == one.wheel.tag))
    return;
  const std::string shown = have.empty() ? "-" : release + (tag.empty() ? "" : " (" + tag + ")");
  Finding finding = about_environment("env_torch_differs", Severity::error, subject,
                                      {{"have", shown}, {"want", want}});
  finding.evidence.push_back(
      {"file", env.torch.path.empty() ? subject.folder : env.torch.path, shown});
  out.push_back(std::move(finding));
}

void check_code(const EnvSubject& subject, std::vector<Finding>& out) {
  const LockClass& one = subject.one;
  if (subject.code == nullptr || one.wheel.is_cpu() || one.wheel.code.empty()) return;
  if (archs(*subject.code) == archs(one.wheel.code)) return;
  Finding finding = about_environment("env_code_differs", Severity::warning, subject,
                                      {{"file", subject.code_file},
                                       {"file_archs", checks::list_archs(*subject.code)},
                                       {"lock_archs", checks::list_archs(one.wheel.code)},
                                       {"torch", one.wheel.torch + "+" + one.wheel.tag}});
  finding.evidence.push_back({"file", subject.code_file, finding.args["file_archs"]});
  out.push_back(std::move(finding));
}

// One finding per owner, however many packages it put there.
void check_owners(const EnvSubject& subject, const Policy& policy, std::vector<Finding>& out) {
  std::map<std::string, std::vector<std::string>> packages;
  for (const facts::Distribution& one : *subject.env->distributions)
    packages[one.installer].push_back(one.name);
  for (const auto& [owner, names] : packages) {
    for (const Reason& reason : forbids_owner(policy, names.front(), owner)) {
      const std::string environment = "env " + subject.one.name;
      Finding finding = checks::finding("env_owner_forbidden", Severity::error, environment);
      finding.args = reason.args;
      finding.args["subject"] = environment;
      std::vector<std::string> shown(
          names.begin(), names.begin() + static_cast<long>(std::min<size_t>(names.size(), 6)));
      if (shown.size() < names.size()) shown.push_back("...");
      finding.args["package"] = join(shown, ", ");
      out.push_back(std::move(finding));
    }
  }
}

// Of doctor's findings those that are about this environment and not about the machine.
void add_doctor(const facts::Facts& facts, const std::string& folder, DoctorPart part,
                const knowledge::Knowledge& knowledge, std::vector<Finding>& out) {
  const checks::Report report = checks::examine(facts, knowledge);
  for (const Finding& one : report.findings) {
    const bool serious =
        one.severity == Severity::error ||
        (one.severity == Severity::warning && part == DoctorPart::errors_and_warnings);
    if (serious && (contains(one.subject, folder) || one.id == "compute_check_failed"))
      out.push_back(one);
  }
}

}  // namespace

std::vector<Finding> check_environment(const EnvSubject& subject, const Policy& policy) {
  std::vector<Finding> out;
  const LockClass& one = subject.one;
  if (subject.env == nullptr) {
    out.push_back(
        about_environment("env_missing", Severity::error, subject, {{"folder", subject.folder}}));
    return out;
  }
  const facts::PythonEnv& env = *subject.env;
  check_torch(subject, out);
  const std::string python = env.python.value_or("");
  if (!python.empty() && python != one.python && !starts_with(python, one.python + "."))
    out.push_back(about_environment("env_python_differs", Severity::error, subject,
                                    {{"have", python}, {"want", one.python}}));
  if (env.distributions) {
    std::vector<LockedPackageChange> changes =
        changes_between(subject.lock, env, one.python, machine_of(one));
    changes.erase(std::remove_if(changes.begin(), changes.end(),
                                 [](const LockedPackageChange& c) {
                                   return c.name == "torch" && !c.before.empty() &&
                                          !c.after.empty();
                                 }),
                  changes.end());  // said by env_torch_differs
    if (!changes.empty())
      out.push_back(about_environment("env_packages_differ", Severity::error, subject,
                                      {{"changes", changes_text(changes)}}));
    check_owners(subject, policy, out);
  } else {
    Finding unknown =
        about_environment("env_packages_differ", Severity::unknown, subject, {{"changes", ""}});
    unknown.unknown_because = env.distributions.note;
    out.push_back(std::move(unknown));
  }
  check_code(subject, out);
  return out;
}

bool is_damage(const checks::Finding& finding) {
  return finding.id == "torch_install_broken" || finding.id == "package_file_damaged";
}

bool is_about_lock(const checks::Finding& finding) { return starts_with(finding.id, "env_"); }

std::vector<Finding> examine_environment(const LockClass& one, const formats::Pylock& lock,
                                         const std::string& folder, const facts::Facts& facts,
                                         const Policy& policy, DoctorPart doctor,
                                         const knowledge::Knowledge& knowledge) {
  EnvSubject subject{one, lock, nullptr, nullptr, folder, ""};
  checks::TorchCode code;
  if (!facts.envs.empty()) {
    subject.env = &facts.envs.front();
    const checks::Input input = checks::make_input(facts, knowledge);
    code = checks::torch_code_of(input, *subject.env, checks::torch_build_of(input, *subject.env));
    if (!code.from_table && !code.code.empty() && !code.incomplete) {
      subject.code = &code.code;
      subject.code_file = code.where;
    }
  }
  std::vector<Finding> out = check_environment(subject, policy);
  if (subject.env != nullptr) add_doctor(facts, folder, doctor, knowledge, out);
  return out;
}

facts::Facts without_gpu(facts::Facts facts) {
  facts.pci = {};
  facts.kernel = {};
  facts.driver_libraries.clear();
  facts.nvml = {};
  facts.cuda = {};
  return facts;
}

}  // namespace cufit::resolve
