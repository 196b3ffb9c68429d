// SPDX-License-Identifier: Apache-2.0
#include "commands/env/env.h"

#include <algorithm>
#include <cstdlib>
#include <cstdio>

#include "base/format.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "checks/doctor.h"
#include "checks/gpu_code.h"
#include "commands/settings.h"
#include "commands/resolve/targets.h"
#include "host/files/paths.h"
#include "host/probe.h"
#include "resolve/lock/lock_check.h"

namespace cufit::commands {
namespace {

using knowledge::Knowledge;

constexpr size_t k_env_most_bytes = 64u << 20;

constexpr Option k_list_options[] = {
    {"CLASS", "", "", true, ""},
    {"--lock", "DIR", "", false, ""},
    {"--json", "", "", false, ""},
};
constexpr Option k_check_options[] = {
    {"CLASS", "", "", true, ""},         {"--lock", "DIR", "", false, ""},
    {"--policy", "FILE", "", false, ""}, {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

// Of doctor's findings those that are about this environment and not about the machine.
void add_doctor(const facts::Facts& facts, const std::string& folder, bool only_damage,
                std::vector<checks::Finding>& out) {
  const checks::Report report = checks::examine(facts, Knowledge::builtin());
  for (const checks::Finding& one : report.findings) {
    const bool serious =
        one.severity == checks::Severity::error || one.severity == checks::Severity::warning;
    if (only_damage && !is_damage(one)) continue;
    if (serious && (contains(one.subject, folder) || one.id == "compute_check_failed"))
      out.push_back(one);
  }
}

}  // namespace

bool is_damage(const checks::Finding& finding) {
  return finding.id == "torch_install_broken" || finding.id == "package_file_damaged";
}

Result<FoundLock> open_lock(const Arguments& arguments) {
  CUFIT_TRY(found, find_lock(legacy_context(), arguments.get("lock"), arguments.has("quiet")));
  if (found) return std::move(*found);
  // Projects of other package managers have their own way to make an environment.
  for (const auto& [file, command] :
       {std::pair("pixi.toml", "pixi install"),
        std::pair("environment.yml", "conda env create -f environment.yml")}) {
    const std::string other = host::find_upwards(host::working_folder(), file);
    if (!other.empty())
      return fail(Code::usage,
                  format("no cufit.lock here; `{}` belongs to another package manager, which "
                         "makes its environment itself: `{}`",
                         other, command));
  }
  return fail(Code::usage, "no cufit.lock in this folder or its parents: `cufit lock` makes one");
}

std::string lock_option(const Arguments& arguments) {
  return arguments.has("lock") ? " --lock " + shell_word(arguments.get("lock")) : std::string();
}

Result<std::vector<size_t>> chosen_classes(const Arguments& arguments,
                                           const resolve::LockFile& lock) {
  std::vector<std::string> names;
  for (const resolve::LockClass& one : lock.classes) names.push_back(one.name);
  std::vector<size_t> out;
  for (const std::string& asked : arguments.all("CLASS")) {
    const auto found = std::find(names.begin(), names.end(), asked);
    if (found == names.end())
      return fail(Code::usage,
                  format("no class `{}` in `{}`; it has {}", asked, lock.path, join(names, ", ")));
    out.push_back(static_cast<size_t>(found - names.begin()));
  }
  if (out.empty())
    for (size_t i = 0; i < names.size(); ++i) out.push_back(i);
  return out;
}

Result<formats::Pylock> read_pylock(const FoundLock& found, const resolve::LockClass& one) {
  const std::string path = found.folder + "/" + one.file;
  CUFIT_TRY(bytes, host::RealHost().read_file(path, k_env_most_bytes));
  if (sha256(bytes) != one.sha256)
    return fail(Code::malformed,
                format("`{}` is not what was locked (its SHA-256 differs from cufit.lock): `cufit "
                       "lock --check -o {}` says more",
                       path, shell_word(found.folder)));
  CUFIT_TRY(lock, formats::parse_pylock(bytes, path));
  // Said before gigabytes are installed that could only be thrown away.
  if (const std::string other = resolve::other_torch(one, lock); !other.empty())
    return fail(Code::malformed,
                format("`{}` holds torch {}, cufit.lock says {}+{}: one of them was edited; `cufit "
                       "lock -o {}` makes both again",
                       path, other, one.wheel.torch, one.wheel.tag, shell_word(found.folder)));
  return lock;
}

report::EnvRow env_row(const host::EnvironmentPaths& paths, const resolve::LockClass& one) {
  report::EnvRow row;
  row.name = one.name;
  row.folder = paths.folder;
  const bool there = host::RealHost().exists(paths.folder);
  const Result<formats::EnvRecord> record = host::read_record(paths);
  if (!there) {
    row.state = "absent";
    return row;
  }
  if (!record) {
    const bool foreign = record.error().code == Code::not_found;
    row.state = foreign ? "foreign" : "damaged";
    if (!foreign) row.why = record.error().text();
    return row;
  }
  // Without its interpreter it is made again: `run` refuses it, too.
  const bool whole = host::RealHost().exists(paths.folder + "/bin/python");
  row.state = !whole ? "broken" : record->pylock_sha256 == one.sha256 ? "current" : "outdated";
  row.python = record->python;
  row.torch = record->torch;
  row.installer = record->installer;
  row.created = record->created;
  row.packages = record->packages;
  row.bytes = record->bytes;
  row.shared_bytes = record->shared_bytes;
  return row;
}

std::vector<checks::Finding> examine_environment(const resolve::LockClass& one,
                                                 const formats::Pylock& lock,
                                                 const std::string& folder,
                                                 const facts::Facts& facts,
                                                 const resolve::Policy& policy, bool only_damage) {
  resolve::EnvSubject subject{one, lock, nullptr, nullptr, folder, ""};
  checks::TorchCode code;
  if (!facts.envs.empty()) {
    subject.env = &facts.envs.front();
    const checks::Input input = checks::make_input(facts, Knowledge::builtin());
    code = checks::torch_code_of(input, *subject.env, checks::torch_build_of(input, *subject.env));
    if (!code.from_table && !code.code.empty() && !code.incomplete) {
      subject.code = &code.code;
      subject.code_file = code.where;
    }
  }
  std::vector<checks::Finding> out = resolve::check_environment(subject, policy);
  if (subject.env != nullptr) add_doctor(facts, folder, only_damage, out);
  return out;
}

std::span<const Option> env_list_options() { return k_list_options; }
std::span<const Option> env_check_options() { return k_check_options; }
std::span<const Option> env_remove_options() { return k_list_options; }

int run_env_list(const Arguments& arguments) {
  const Result<FoundLock> found = open_lock(arguments);
  if (!found) return exit_code_for(found.error());
  const Result<std::vector<size_t>> chosen = chosen_classes(arguments, found->lock);
  if (!chosen) return exit_code_for(chosen.error());
  report::EnvListView view{
      "cufit.env.list/1", {}, "", lock_option(arguments), Knowledge::builtin()};
  for (const size_t index : *chosen) {
    const resolve::LockClass& one = found->lock.classes[index];
    const Result<host::EnvironmentPaths> paths = host::environment_paths(found->folder, one.name);
    if (!paths) return exit_code_for(paths.error());
    view.rows.push_back(env_row(*paths, one));
    const std::string& state = view.rows.back().state;
    if (state != "current" && state != "foreign") view.next = "env.next_create";
  }
  for (const report::EnvRow& row : view.rows)  // before the others: `create` stops at it
    if (row.state == "damaged") {
      view.at = " --force " + row.name + lock_option(arguments);
      break;
    }
  return print(
      arguments.has("json") ? env_list_json(view) : env_list_text(view, style_for(arguments)),
      k_ok);
}

int run_env_check(const Arguments& arguments) {
  const Result<FoundLock> found = open_lock(arguments);
  if (!found) return exit_code_for(found.error());
  const Result<std::vector<size_t>> chosen = chosen_classes(arguments, found->lock);
  if (!chosen) return exit_code_for(chosen.error());
  const Result<resolve::Policy> policy = read_policy(legacy_context(), arguments.get("policy"), found->folder);
  if (!policy) return exit_code_for(policy.error());
  std::vector<checks::Finding> findings;
  const bool named = !arguments.all("CLASS").empty();
  const std::vector<bool> for_here = named ? std::vector<bool>(found->lock.classes.size(), true)
                                           : classes_for_here(found->lock, legacy_context().machine);
  for (const size_t index : *chosen) {
    const resolve::LockClass& one = found->lock.classes[index];
    const Result<formats::Pylock> lock = read_pylock(*found, one);
    if (!lock) return exit_code_for(lock.error());
    const Result<host::EnvironmentPaths> paths = host::environment_paths(found->folder, one.name);
    if (!paths) return exit_code_for(paths.error());
    const report::EnvRow row = env_row(*paths, one);
    if (row.state == "outdated") {
      checks::Finding old;
      old.id = "env_outdated";
      old.severity = checks::Severity::error;
      old.subject = "env " + one.name;
      old.args = {{"class", one.name}, {"created", row.created}};
      findings.push_back(std::move(old));
      continue;  // it differs from the new lock, of course
    }
    if (row.state == "damaged" || row.state == "foreign") {
      checks::Finding unknown;
      unknown.id = "env_record_damaged";
      unknown.severity = checks::Severity::error;
      unknown.subject = "env " + one.name;
      unknown.args = {{"class", one.name}, {"folder", paths->folder}, {"why", row.why}};
      if (row.state == "foreign") unknown.variant = "foreign";
      findings.push_back(std::move(unknown));
    }
    if (row.state == "broken") {
      checks::Finding broken;
      broken.id = "env_missing";
      broken.variant = "interpreter";
      broken.severity = checks::Severity::error;
      broken.subject = "env " + one.name;
      broken.args = {{"class", one.name}, {"folder", paths->folder}};
      findings.push_back(std::move(broken));
      continue;
    }
    facts::Facts facts;
    if (row.state != "absent") {
      const WithoutUserSite apart;
      host::ProbeOptions options;
      options.env_dirs = {paths->folder};
      facts = host::collect(host::RealHost(), options);
      if (!for_here[index]) {
        facts = without_gpu(std::move(facts));
        print_message(format("class {} is for other machines ({}): its files alone were looked at",
                             one.name, join(one.serves, "; ")));
      }
    }
    for (checks::Finding& one_finding :
         examine_environment(one, *lock, paths->folder, facts, *policy, false)) {
      // Not the torch of some index: the one of the lock.
      if (is_damage(one_finding))
        one_finding.args["command"] =
            format("cufit env create --force {}{}", one.name, lock_option(arguments));
      findings.push_back(std::move(one_finding));
    }
  }
  resolve::LockFile looked_at = found->lock;
  looked_at.classes.clear();
  for (const size_t index : *chosen) looked_at.classes.push_back(found->lock.classes[index]);
  for (checks::Finding& forbidden : resolve::check_policy(looked_at, *policy)) {
    forbidden.args["at"] = arguments.has("lock") ? " -o " + shell_word(arguments.get("lock")) : "";
    findings.push_back(std::move(forbidden));
  }
  const bool bad = std::any_of(findings.begin(), findings.end(), [](const checks::Finding& one) {
    return one.severity != checks::Severity::note && one.severity != checks::Severity::ok;
  });
  const std::string at = lock_option(arguments);
  for (checks::Finding& one : findings)
    if (starts_with(one.id, "env_")) one.args["at"] = at;
  const report::FindingsView view{"cufit.env.check/1", "env.check.good", "", findings,
                                  Knowledge::builtin()};
  return print(
      arguments.has("json") ? findings_json(view) : findings_text(view, style_for(arguments)),
      bad ? k_findings : k_ok);
}

int run_env_remove(const Arguments& arguments) {
  const Result<FoundLock> found = open_lock(arguments);
  if (!found) return exit_code_for(found.error());
  if (arguments.all("CLASS").empty())
    return exit_code_for(fail(Code::usage, "`cufit env remove` needs the names of classes"));
  const Result<std::vector<size_t>> chosen = chosen_classes(arguments, found->lock);
  if (!chosen) return exit_code_for(chosen.error());
  report::EnvListView view{"cufit.env.remove/1", {}, "", "", Knowledge::builtin()};
  host::Interrupts interrupts;
  for (const size_t index : *chosen) {
    const resolve::LockClass& one = found->lock.classes[index];
    const Result<host::EnvironmentPaths> paths = host::environment_paths(found->folder, one.name);
    if (!paths) return exit_code_for(paths.error());
    report::EnvRow row = env_row(*paths, one);
    if (row.state != "absent" || host::RealHost().exists(paths->record)) {
      const Result<host::EnvironmentsLock> lock = host::EnvironmentsLock::take(paths->envs);
      if (!lock) return exit_code_for(lock.error());
      if (const Result<void> done = host::remove_environment(*paths); !done)
        return exit_code_for(done.error());
      row = report::EnvRow{one.name, "removed", paths->folder};
    }
    view.rows.push_back(std::move(row));
  }
  return print(
      arguments.has("json") ? env_list_json(view) : env_list_text(view, style_for(arguments)),
      k_ok);
}

}  // namespace cufit::commands
