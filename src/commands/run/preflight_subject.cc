// SPDX-License-Identifier: Apache-2.0
#include "commands/run/preflight_subject.h"

#include <algorithm>

#include "base/format.h"
#include "commands/resolve/targets.h"
#include "commands/run/run_choice.h"
#include "host/files/paths.h"
#include "report/resolve.h"

namespace cufit::commands {
namespace {

using knowledge::Knowledge;

std::string absolute(const std::string& path) { return host::absolute_folders({path})[0]; }

Result<PreflightSubject> by_lock(const Context& context, const FoundLock& found,
                                 const std::string& asked, const resolve::Policy& policy,
                                 const std::string& lang) {
  const Knowledge& knowledge = context.knowledge;
  CUFIT_TRY(choice, choose_class(context, found, asked, policy));
  PreflightSubject out;
  out.lock_folder = found.folder;
  out.env = choice.env;
  if (choice.index != resolve::Routing::npos) {
    out.class_name = found.lock.classes[choice.index].name;
    out.cpu_class = found.lock.classes[choice.index].wheel.is_cpu();
  }
  if (choice.refusal) {
    const report::RunView view{found.lock,   choice.live,      choice.routing,
                               choice.index, choice.asked_for, knowledge};
    out.said_id = choice.refusal->id;
    out.said = report::refusal_line(*choice.refusal, view, lang);
    // A rule of the team's is named wherever it is what stands in the way: of no class that was
    // asked for or chosen (what it was refused for is said), but where none fits.
    for (const resolve::Verdict& verdict : choice.routing.verdicts) {
      if (choice.index != resolve::Routing::npos) break;
      const auto rule =
          std::find_if(verdict.reasons.begin(), verdict.reasons.end(),
                       [](const resolve::Reason& reason) { return reason.id == "policy"; });
      if (rule == verdict.reasons.end()) continue;
      out.said += std::string(knowledge.message("report.semicolon", lang)) +
                  report::reason_text(*rule, lang, knowledge);
      break;
    }
    out.machine = report::sight_text(view, lang);
    out.next = choice.refusal->next;
  }
  return out;
}

}  // namespace

Result<PreflightSubject> find_subject(const Context& context, const PreflightRequest& request) {
  const std::string asked = request.env.value_or("");
  if (!asked.empty() && context.machine.exists(absolute(asked)))
    return PreflightSubject{absolute(asked), {}, false, {}, {}, {}, {}, {}};
  const std::string active = context.files.variable("VIRTUAL_ENV").value_or("");
  const std::string active_class = context.files.variable("CUFIT_CLASS").value_or("");
  CUFIT_TRY(found, find_lock(context, request.lock, request.quiet));
  if (asked.empty() && !active.empty() && !active_class.empty())
    return PreflightSubject{active, active_class, false, {},
                            {},     {},           {},    found ? found->folder : ""};
  if (found) {
    CUFIT_TRY(policy, read_policy(context, request.policy, found->folder));
    return by_lock(context, *found, asked, policy, context.language());
  }
  if (!asked.empty())
    return fail(Code::usage, format("`--env {}`: no such folder, and no cufit.lock here or above "
                                    "has a class of that name",
                                    asked));
  return PreflightSubject();
}

// A class of a lock is made anew; of any other environment, what suits this machine is said.
std::string way_to_torch(const PreflightSubject& subject) {
  if (subject.class_name.empty() || subject.lock_folder.empty()) return "cufit resolve torch";
  // What its record calls up to date is made anew only by force.
  return create_command(subject.lock_folder, subject.class_name) + " --force";
}

}  // namespace cufit::commands
