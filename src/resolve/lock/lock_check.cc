// SPDX-License-Identifier: Apache-2.0
#include "resolve/lock/lock_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/sha256.h"
#include "formats/python/python_metadata.h"
#include "formats/python/requirement.h"
#include "resolve/wheel/python_choice.h"

namespace cufit::resolve {
namespace {

using checks::Finding;
using checks::Severity;

struct Locked {
  std::string version;
  std::set<std::string> hashes;
};

std::map<std::string, Locked> locked_packages(const formats::Pylock& lock,
                                              const std::string& python,
                                              const std::string& machine) {
  std::map<std::string, Locked> out;
  for (const formats::PylockPackage& package : lock.packages) {
    if (!formats::applies(package, python, machine)) continue;
    Locked& one = out[package.name];
    one.version = package.version;
    const auto take = [&](const formats::PylockFile& file) {
      for (const auto& [kind, value] : file.hashes) one.hashes.insert(kind + ":" + value);
    };
    for (const formats::PylockFile& wheel : package.wheels) take(wheel);
    if (package.sdist) take(*package.sdist);
    if (package.archive) take(*package.archive);
  }
  return out;
}

// What is built where torch is already, and what builds it: no lock can hold that.
bool is_built_apart(const std::string& name) {
  for (const char* one : {"flash-attn", "ninja", "psutil", "packaging", "einops"})
    if (name == one) return true;
  return false;
}

bool is_installer(const std::string& name) {
  return name == "pip" || name == "setuptools" || name == "wheel" || name == "uv";
}

Finding found(const char* id, Severity severity, std::string subject,
              std::map<std::string, std::string> args) {
  Finding out;
  out.id = id;
  out.severity = severity;
  out.subject = std::move(subject);
  out.args = std::move(args);
  return out;
}

Finding of_policy(const char* id, const std::string& subject, const Reason& reason) {
  Finding out = found(id, Severity::error, subject, reason.args);
  out.args["subject"] = subject;
  return out;
}

}  // namespace

bool same_version(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = formats::parse_python_version(a), y = formats::parse_python_version(b);
  return x && y && formats::compare(*x, *y) == 0 && x->local == y->local;
}

std::string machine_of(const LockClass& one) {
  const size_t at = one.wheel.platform.find('_');
  return at == std::string::npos ? one.wheel.platform : one.wheel.platform.substr(at + 1);
}

std::vector<LockedPackageChange> changes_between(const formats::Pylock& before,
                                                 const formats::Pylock& after,
                                                 const std::string& python,
                                                 const std::string& machine) {
  const std::map<std::string, Locked> a = locked_packages(before, python, machine),
                                      b = locked_packages(after, python, machine);
  std::vector<LockedPackageChange> out;
  for (const auto& [name, one] : a) {
    const auto other = b.find(name);
    if (other == b.end()) {
      out.push_back({name, one.version, ""});
      continue;
    }
    const bool other_files =
        !one.hashes.empty() && !other->second.hashes.empty() && one.hashes != other->second.hashes;
    if (!same_version(one.version, other->second.version) || other_files)
      out.push_back({name, one.version, other->second.version});
  }
  for (const auto& [name, one] : b)
    if (a.count(name) == 0) out.push_back({name, "", one.version});
  return out;
}

std::vector<LockedPackageChange> changes_between(const formats::Pylock& lock,
                                                 const facts::PythonEnv& env,
                                                 const std::string& python,
                                                 const std::string& machine) {
  const std::map<std::string, Locked> wanted = locked_packages(lock, python, machine);
  std::map<std::string, std::string> have;
  // What conda put there beside Python is no package of the lock's: libraries, what its pip needs.
  std::set<std::string> by_conda;
  for (const facts::Distribution& one : env.distributions.value_or({})) {
    const std::string name = formats::normalize_name(one.name);
    const bool record = one.kind == "conda-meta";
    if (record || one.installer == "conda") by_conda.insert(name);
    if (!record && one.kind != "leftover") have[name] = one.version;
  }
  std::vector<LockedPackageChange> out;
  for (const auto& [name, one] : wanted) {
    const auto there = have.find(name);
    if (there == have.end())
      out.push_back({name, one.version, ""});
    else if (!one.version.empty() && !same_version(one.version, there->second))
      out.push_back({name, one.version, there->second});
  }
  for (const auto& [name, version] : have)
    if (wanted.count(name) == 0 && by_conda.count(name) == 0 && !is_installer(name) &&
        !is_built_apart(name))
      out.push_back({name, "", version});
  return out;
}

std::string changes_text(const std::vector<LockedPackageChange>& changes, size_t most) {
  std::vector<std::string> parts;
  for (const LockedPackageChange& change : changes) {
    if (parts.size() == most) {
      parts.push_back(format("... ({})", changes.size() - most));
      break;
    }
    if (change.after.empty())
      parts.push_back(format("- {} {}", change.name, change.before));
    else if (change.before.empty())
      parts.push_back(format("+ {} {}", change.name, change.after));
    else
      parts.push_back(format("{} {} -> {}", change.name, change.before, change.after));
  }
  return join(parts, ", ");
}

std::vector<Finding> check_pylock(const LockClass& one, const std::string& path,
                                  const std::string* bytes, const std::string& why) {
  std::vector<Finding> out;
  if (bytes == nullptr) {
    out.push_back(found("lock_edited", Severity::error, "class " + one.name,
                        {{"file", path}, {"class", one.name}, {"why", why}}));
    out.back().variant = "missing";
  } else if (const std::string sum = sha256(*bytes); sum != one.sha256) {
    out.push_back(found("lock_edited", Severity::error, "class " + one.name,
                        {{"file", path}, {"class", one.name}}));
    out.back().evidence.push_back({"file", path, "sha256 " + sum.substr(0, 16) + "..."});
    out.back().evidence.push_back(
        {"file", "cufit.lock", "sha256 " + one.sha256.substr(0, 16) + "..."});
  }
  return out;
}

std::vector<Finding> check_sum(const LockFile& lock) {
  if (!lock.summed)
    return {found("lock_without_sum", Severity::note, "cufit.lock", {{"file", lock.path}})};
  if (!lock.edited) return {};
  std::vector<Finding> out = {
      found("lock_edited", Severity::error, "cufit.lock", {{"file", lock.path}})};
  out.back().variant = "index";
  return out;
}

std::string other_torch(const LockClass& one, const formats::Pylock& pylock) {
  for (const formats::PylockPackage& package : pylock.packages) {
    if (package.name != "torch" || package.version.empty() ||
        !formats::applies(package, one.python, machine_of(one)))
      continue;
    const size_t plus = package.version.find('+');
    const bool same =
        same_version(package.version.substr(0, plus), one.wheel.torch) &&
        (plus == std::string::npos || package.version.substr(plus + 1) == one.wheel.tag);
    return same ? "" : package.version;
  }
  return {};
}

std::vector<Finding> check_row(const LockClass& one, const std::string& path,
                               const formats::Pylock& pylock) {
  const std::string other = other_torch(one, pylock);
  if (other.empty()) return {};
  std::vector<Finding> out = {found("lock_edited", Severity::error, "class " + one.name,
                                    {{"file", path},
                                     {"class", one.name},
                                     {"have", other},
                                     {"want", one.wheel.torch + "+" + one.wheel.tag}})};
  out.back().variant = "row";
  return out;
}

std::vector<Finding> check_requirements(const LockFile& lock, const std::vector<std::string>& now,
                                        const std::vector<PythonDemand>& pythons,
                                        const std::string& python) {
  const std::set<std::string> before(lock.requirements.begin(), lock.requirements.end()),
      after(now.begin(), now.end());
  std::vector<std::string> changes;
  for (const std::string& text : before)
    if (after.count(text) == 0) changes.push_back("- " + text);
  for (const std::string& text : after)
    if (before.count(text) == 0) changes.push_back("+ " + text);
  for (const LockClass& one : lock.classes)
    if (!python.empty() && python != one.python)
      changes.push_back(format("Python {} -> {} ({})", one.python, python, one.name));
  for (const PythonDemand& demand : pythons)
    for (const LockClass& one : lock.classes)
      if (!meets(demand, one.python))
        changes.push_back(
            format("Python {} ({}) -> requires-python {}", one.python, one.name, demand.text));
  if (changes.empty()) return {};
  return {found("lock_requirements_changed", Severity::error, "cufit.lock",
                {{"changes", join(changes, "; ")}})};
}

std::vector<Finding> check_policy(const LockFile& lock, const Policy& policy) {
  std::vector<Finding> out;
  for (const LockClass& one : lock.classes) {
    for (const Reason& reason : forbids(policy, one.wheel))
      out.push_back(of_policy("lock_policy_forbids", "class " + one.name, reason));
    for (const Reason& reason : forbids_python(policy, one.python))
      out.push_back(of_policy("lock_policy_forbids", "class " + one.name, reason));
  }
  return out;
}

std::vector<Finding> check_resolution(const LockClass& one, const formats::Pylock& locked,
                                      const formats::Pylock& relocked) {
  const std::vector<LockedPackageChange> changes =
      changes_between(locked, relocked, one.python, machine_of(one));
  if (changes.empty()) return {};
  return {found("lock_outdated", Severity::error, "class " + one.name,
                {{"class", one.name}, {"changes", changes_text(changes)}})};
}

}  // namespace cufit::resolve
