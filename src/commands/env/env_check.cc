// SPDX-License-Identifier: Apache-2.0
// `cufit env check`: is each environment what the lock says, and does it run here?
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/env/env.h"
#include "commands/resolve/targets.h"
#include "host/install/ownership.h"
#include "host/probe.h"
#include "resolve/lock/environment_check.h"
#include "resolve/lock/lock_check.h"

namespace cufit::commands {
namespace {

using checks::Finding;
using checks::Severity;

constexpr Option k_env_check_options[] = {
    k_class_option<EnvCheckRequest>,
    k_lock_option<EnvCheckRequest>,
    option<&EnvCheckRequest::policy>("--policy", "FILE"),
    k_env_json_option<EnvCheckRequest>,
    option<&EnvCheckRequest::verbose>("-v,--verbose"),
};

// What the row of an environment says already; nothing of one that is as it was made.
std::optional<Finding> finding_of(const report::EnvRow& row) {
  Finding out;
  out.severity = Severity::error;
  out.subject = "env " + row.name;
  if (row.state == "outdated") {
    out.id = "env_outdated";
    out.args = {{"class", row.name}, {"created", row.created}};
    return out;
  }
  if (row.state == "damaged" || row.state == "foreign") {
    out.id = "env_record_damaged";
    out.args = {{"class", row.name}, {"folder", row.folder}, {"why", row.why}};
    if (row.state == "foreign") out.variant = "foreign";
    return out;
  }
  if (row.state == "broken") {
    out.id = "env_missing";
    out.variant = "interpreter";
    out.args = {{"class", row.name}, {"folder", row.folder}};
    return out;
  }
  return std::nullopt;
}

// Of the environment of one class, as its row says that it is there.
facts::Facts environment_facts(const Context& context, const report::EnvRow& row,
                               const resolve::LockClass& one, bool for_here) {
  if (row.state == "absent") return {};
  host::ProbeOptions options;
  options.user_site = false;
  options.env_dirs = {row.folder};
  options.every_file = true;
  // It lies beside the lock, wherever that lies.
  facts::Facts facts = host::collect(context.files, options);
  if (for_here) return facts;
  context.output.print_message(context.message(
      "env.check.elsewhere", {{"class", one.name}, {"machines", join(one.serves, "; ")}}));
  return resolve::without_gpu(std::move(facts));
}

Result<void> check_class(const Context& context, const FoundLock& found,
                         const resolve::LockClass& one, const resolve::Policy& policy,
                         bool for_here, const std::string& lock_option,
                         std::vector<Finding>& findings) {
  CUFIT_TRY(lock, read_pylock(context.files, found, one));
  CUFIT_TRY(paths, host::environment_paths(found.folder, one.name));
  const report::EnvRow row = env_row(context.files, paths, one);
  if (const auto foreign =
          host::foreign_owner(context.files, found.folder, found.named, one.name)) {
    Finding finding = {"env_foreign_owner", Severity::error, "env " + one.name};
    finding.args = {{"class", one.name},
                    {"folder", found.folder},
                    {"owner", foreign->owner},
                    {"path", foreign->path},
                    {"safe", host::with_safe_directory(context.files, found.folder)}};
    finding.evidence = {{"file", foreign->path, foreign->owner}};
    findings.push_back(std::move(finding));
  }
  if (std::optional<Finding> finding = finding_of(row)) findings.push_back(std::move(*finding));
  // An old one differs from the new lock, of course; without its interpreter one does not run.
  if (row.state == "outdated" || row.state == "broken") return {};
  const facts::Facts facts = environment_facts(context, row, one, for_here);
  for (Finding& finding :
       resolve::examine_environment(one, lock, paths.folder, facts, policy,
                                    resolve::DoctorPart::errors_and_warnings, context.knowledge)) {
    // Not the torch of some index: the one of the lock.
    if (resolve::is_damage(finding))
      finding.args["command"] = format("cufit env create --force {}{}", one.name, lock_option);
    findings.push_back(std::move(finding));
  }
  return {};
}

int print_findings(const Context& context, const EnvCheckRequest& request,
                   const std::vector<Finding>& findings) {
  const bool bad = std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.severity != Severity::note && one.severity != Severity::ok;
  });
  const report::FindingsView view{"cufit.env.check/1", "env.check.good", "", findings,
                                  context.knowledge};
  return context.output.print(request.json
                                  ? findings_json(view)
                                  : findings_text(view, context.output.style(request.verbose)),
                              bad ? k_findings : k_ok);
}

}  // namespace

std::span<const Option> env_check_options() { return k_env_check_options; }

int run_env_check(const Context& context, const EnvCheckRequest& request) {
  const Output& output = context.output;
  const Result<FoundLock> found = open_lock(context, request.lock);
  if (!found) return output.exit_code_for(found.error());
  const Result<std::vector<size_t>> chosen = chosen_classes(request.classes, found->lock);
  if (!chosen) return output.exit_code_for(chosen.error());
  const Result<resolve::Policy> policy = read_policy(context, request.policy, found->folder);
  if (!policy) return output.exit_code_for(policy.error());
  const std::string at = lock_option(request);
  // Who names a class wants it judged for this machine, whichever it was made for.
  const std::vector<bool> for_here =
      request.classes.empty() ? classes_for_here(found->lock, context.machine, context.knowledge)
                              : std::vector<bool>(found->lock.classes.size(), true);
  std::vector<Finding> findings;
  resolve::LockFile looked_at = found->lock;
  looked_at.classes.clear();
  for (const size_t index : *chosen) {
    const resolve::LockClass& one = found->lock.classes[index];
    if (const Result<void> done =
            check_class(context, *found, one, *policy, for_here[index], at, findings);
        !done)
      return output.exit_code_for(done.error());
    looked_at.classes.push_back(one);
  }
  for (Finding& forbidden : resolve::check_policy(looked_at, *policy)) {
    forbidden.args["at"] = request.lock ? " -o " + shell_word(*request.lock) : "";
    findings.push_back(std::move(forbidden));
  }
  for (Finding& one : findings)
    if (starts_with(one.id, "env_")) one.args["at"] = at;
  return print_findings(context, request, findings);
}

}  // namespace cufit::commands
