// SPDX-License-Identifier: Apache-2.0
// `cufit lock --check`: drift between a lock, its files, what it was made from, the policy, the
// machines it was made for and, with the network, what the installer would resolve today.

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/lock/lock.h"
#include "host/files/paths.h"
#include "host/process/this_process.h"
#include "report/lock.h"
#include "report/resolve.h"
#include "resolve/lock/lock_check.h"
#include "resolve/lock/lock_class.h"

namespace cufit::commands {
namespace {

using checks::Finding;
using checks::Severity;

constexpr size_t k_lock_check_most_bytes = 64u << 20;

void add(std::vector<Finding>& to, std::vector<Finding> more) {
  for (Finding& one : more) to.push_back(std::move(one));
}

Finding unserved(const std::string& target, const std::string& why) {
  Finding out;
  out.id = "lock_target_unserved";
  out.severity = Severity::error;
  out.subject = target;
  out.args = {{"target", target}, {"why", why}};
  return out;
}

bool was_target(const LockJob& job, const std::string& label) {
  const std::vector<std::string>& targets = job.old->targets;
  return std::find(targets.begin(), targets.end(), label) != targets.end();
}

// Judged anew: a machine of the lock may have another driver now, the policy other rules.
std::vector<Finding> check_target(const Context& context, const LockJob& job,
                                  const std::string& label, const std::string& lang) {
  const knowledge::Knowledge& knowledge = context.knowledge;
  const Result<AskedTarget> asked = read_target(context, label);
  if (!asked) {
    Finding out = unserved(label, "");
    out.severity = Severity::unknown;
    out.unknown_because = asked.error().text();
    return {out};
  }
  const std::vector<resolve::Reason> forbidden =
      resolve::forbids(job.policy, asked->target, knowledge);
  if (!forbidden.empty())
    return {unserved(label, report::reason_text(forbidden.front(), lang, knowledge))};
  const resolve::Routing routing = resolve::route(*job.old, asked->target, knowledge);
  if (resolve::serves_all_gpus(*job.old, asked->target, routing, knowledge)) return {};
  std::vector<std::string> reasons;
  for (size_t i = 0; i < routing.verdicts.size(); ++i)
    if (!routing.verdicts[i].reasons.empty())
      reasons.push_back(job.old->classes[i].name + ": " +
                        report::reason_text(routing.verdicts[i].reasons.front(), lang, knowledge));
  return {unserved(label, join(reasons, "; "))};
}

struct ReadClass {
  const resolve::LockClass* one;
  formats::Pylock pylock;
};

// Files that agree with their sums and can be read.
std::vector<ReadClass> check_files(const host::Host& files, const LockJob& job,
                                   std::vector<Finding>& findings) {
  std::vector<ReadClass> out;
  for (const resolve::LockClass& one : job.old->classes) {
    const std::string path = job.folder + "/" + one.file;
    const Result<std::string> bytes =
        host::read_locked(files, job.folder, {one.file, one.sha256}, k_lock_check_most_bytes);
    std::vector<Finding> sums = resolve::check_pylock(one, path, bytes ? &*bytes : nullptr,
                                                      bytes ? "" : bytes.error().what);
    const bool agrees = sums.empty();
    add(findings, std::move(sums));
    if (!bytes) continue;
    Result<formats::Pylock> pylock = formats::parse_pylock(*bytes, path);
    if (!pylock) continue;
    // Of a file that was edited itself its row says nothing.
    if (agrees) add(findings, resolve::check_row(one, path, *pylock));
    out.push_back({&one, std::move(*pylock)});
  }
  return out;
}

Result<void> check_resolutions(const Context& context, const LockJob& job,
                               const std::vector<ReadClass>& classes,
                               std::vector<Finding>& findings, host::Interrupts& interrupts) {
  CUFIT_TRY(uv, host::find_uv(context.files, interrupts));
  const knowledge::Knowledge& knowledge = context.knowledge;
  for (const ReadClass& each : classes) {
    const resolve::LockClass& one = *each.one;
    resolve::Wheel wheel = one.wheel;
    for (const resolve::Wheel& known : resolve::known_wheels(knowledge, wheel.platform))
      if (known.torch == wheel.torch && known.tag == wheel.tag)
        wheel.on_default_index = known.on_default_index;
    // Locked from an index that has it under the variant's name only: PyTorch's own, or a given one.
    const formats::PylockPackage* torch = formats::find_package(each.pylock, "torch");
    if (torch != nullptr && contains(torch->version, "+")) wheel.on_default_index = false;
    std::vector<Version> glibcs;
    resolve::CompanionPlace place{one.python, {}, std::nullopt};
    for (const std::string& label : one.serves)
      if (const Result<AskedTarget> target = read_target(context, label)) {
        if (target->target.glibc) glibcs.push_back(*target->target.glibc);
        for (const resolve::TargetGpu& gpu : target->target.gpus) place.ccs.push_back(gpu.cc);
      }
    if (!glibcs.empty()) place.glibc = *std::min_element(glibcs.begin(), glibcs.end());
    place.asked = resolve::requirements_for(job.inputs.requirements, wheel, one.python);
    const std::string output =
        format("{}/pylock.{}-cufit-{}.toml", job.folder, one.name, host::process_id());
    (void)host::copy_file(job.folder + "/" + one.file, output);
    const ClassToCompile asked = {wheel, one.python,
                                  resolve::uv_platform(wheel.platform, glibcs, wheel.glibc),
                                  resolve::companions_of(wheel, place, knowledge), output};
    Result<CompiledClass> now = compile_class(context.files, job, uv, asked, interrupts);
    if (!now && now.error().code == Code::malformed) {
      Finding finding;
      finding.id = "lock_outdated";
      finding.severity = Severity::error;
      finding.subject = "class " + one.name;
      finding.args = {{"class", one.name}, {"changes", now.error().text()}};
      findings.push_back(std::move(finding));
      continue;
    }
    if (!now) return std::move(now.error()).in(format("class {}", one.name));
    add(findings, resolve::check_resolution(one, each.pylock, now->pylock));
  }
  return {};
}

// Without what was asked for here, the lock would be made again for what it has.
std::string asked_words(const LockRequest& request) {
  std::string out;
  for (const std::string& file : request.files) out += " -r " + shell_word(file);
  for (const std::string& name : request.extras) out += " --extra " + shell_word(name);
  if (request.python) out += " --python " + shell_word(*request.python);
  for (const std::string& text : request.requirements) out += " " + shell_word(text);
  return out;
}

std::string target_words(const LockJob& job) {
  std::string out;
  std::vector<std::string> targets = job.old->targets;
  for (const std::string& asked : job.targets)
    if (!was_target(job, asked)) targets.push_back(asked);
  for (const std::string& target : targets) out += " --for " + shell_word(target);
  return out;
}

int worst(const std::vector<Finding>& findings) {
  for (const Finding& one : findings)
    if (one.severity == Severity::error || one.severity == Severity::warning ||
        one.severity == Severity::unknown)
      return k_findings;
  return k_ok;
}

}  // namespace

int check_lock(const Context& context, const LockRequest& request) {
  const Output& output = context.output;
  const Result<LockJob> job = read_lock_job(context, request, true);
  if (!job) return output.exit_code_for(job.error());
  std::vector<Finding> findings;
  add(findings, resolve::check_sum(*job->old));
  const std::vector<ReadClass> classes = check_files(context.files, *job, findings);
  add(findings,
      resolve::check_requirements(*job->old, job->inputs.texts, job->inputs.pythons, job->python));
  add(findings, resolve::check_policy(*job->old, job->policy));
  const std::string lang = request.json ? "en" : context.language();
  for (const std::string& target : job->targets)
    for (Finding& one : check_target(context, *job, target, lang)) {
      if (!was_target(*job, target)) one.variant = "asked";
      findings.push_back(std::move(one));
    }
  std::string not_asked;
  if (job->index.offline) {
    not_asked = "lock.check.offline";
  } else if (worst(findings) != k_ok) {
    not_asked = "lock.check.not_resolved";  // it would say the same once more
  } else {
    for (const std::string& note : job->notes) output.print_error(note);
    const Result<host::LockFolder> place =
        host::LockFolder::take(job->folder, host::LockFolder::Hold::shared);
    if (!place) return output.exit_code_for(place.error());
    host::Interrupts interrupts;
    const Result<void> done = check_resolutions(context, *job, classes, findings, interrupts);
    if (!done && done.error().code == Code::cancelled) return interrupted_exit(interrupts.caught());
    if (!done) return output.exit_code_for(done.error());
  }
  const std::string at = job->folder == "." ? "" : " -o " + shell_word(job->folder);
  for (Finding& one : findings)
    one.args["at"] = at + (one.id == "lock_requirements_changed" ? asked_words(request)
                           : one.variant == "asked"              ? target_words(*job)
                                                                 : "");
  const report::FindingsView view{
      "cufit.lock.check/1", "lock.check.good", not_asked, findings, context.knowledge, true};
  return output.print(request.json ? findings_json(view) : findings_text(view, output.style()),
                      worst(findings));
}

}  // namespace cufit::commands
