// SPDX-License-Identifier: Apache-2.0
#include "commands/resolve.h"

#include "commands/settings.h"
#include "commands/targets.h"
#include "report/resolve.h"

namespace cufit::commands {
namespace {

constexpr Option k_options[] = {
    {"REQUIREMENT", "", "", true, ""},
    {"--for", "HERE|FILE|GPU,DRIVER", "", true, ""},
    {"--python", "VERSION", "", false, ""},
    {"--policy", "FILE", "", false, ""},
    {"--default-index-only", "", "", false, ""},
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

}  // namespace

std::span<const Option> resolve_options() { return k_options; }

int run_resolve(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Result<resolve::Request> request = read_request(arguments);
  if (!request) return give_up(request.error());
  request->default_index_only = arguments.has("default-index-only");
  Result<resolve::Policy> policy = read_policy(arguments, working_folder());
  if (!policy) return give_up(policy.error());
  request->policy = std::move(*policy);
  const Result<std::vector<AskedTarget>> targets = read_targets(arguments);
  if (!targets) return give_up(targets.error());
  std::vector<resolve::Answer> answers;
  bool all = true;
  for (const AskedTarget& asked : *targets) {
    resolve::Request own = *request;
    own.installed = resolve::installed_wheels(asked.facts, knowledge);
    answers.push_back(resolve::resolve(asked.target, own, knowledge));
    all = all && !answers.back().usable.empty();
  }
  const report::ResolveView view{answers, *request, knowledge};
  return print(arguments.has("json") ? report::resolve_json(view)
                                     : report::resolve_text(view, style_for(arguments)),
               all ? k_ok : k_findings);
}

}  // namespace cufit::commands
