// SPDX-License-Identifier: Apache-2.0
#include "commands/resolve/resolve.h"

#include "base/format.h"
#include "base/nearest.h"
#include "checks/doctor.h"
#include "checks/evidence.h"
#include "commands/settings.h"
#include "commands/resolve/targets.h"
#include "host/files/paths.h"
#include "host/install/index_client.h"
#include "report/resolve.h"

namespace cufit::commands {
namespace {

constexpr Option k_resolve_options[] = {
    {"REQUIREMENT", "", "", true, ""},
    {"--for", "HERE|FILE|GPU,DRIVER", "", true, ""},
    {"--python", "VERSION", "", false, ""},
    {"--policy", "FILE", "", false, ""},
    {"--default-index-only", "", "", false, ""},
    {"--index", "URL", "", true, ""},
    {"--offline", "", "", false, ""},
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

// The pages of all `--index` as one: what any of them has can be installed.
Result<std::optional<formats::IndexPage>> read_index(const Arguments& arguments) {
  std::optional<formats::IndexPage> all;
  if (arguments.all("index").empty()) return all;
  host::Interrupts interrupts;
  for (const std::string& word : arguments.all("index")) {
    host::IndexOptions options;
    options.offline = arguments.has("offline");
    const formats::IndexUrl index = formats::parse_index_word(word, "--index");
    CUFIT_TRY(answer, host::ask_index(host::RealHost(), index.url, "torch", options, interrupts));
    if (answer.how == host::IndexAnswer::How::stale)
      print_error("using what the index said earlier: " + answer.problem);
    if (!all) all.emplace();
    for (formats::IndexFile& file : answer.page.files) all->files.push_back(std::move(file));
  }
  return all;
}

// What keeps torch from a GPU there, whichever torch it is: the first error of doctor's that is
// about the machine, its container or its only GPU, and not about an environment. A machine that
// has no GPU lacks nothing; one whose container or WSL hides it does. Descriptions have none.
std::string obstacle_of(const AskedTarget& asked, const std::string& lang) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  if (asked.facts.cufit_version.empty() && asked.facts.envs.empty()) return {};
  size_t gpus = asked.target.unknown_gpus.size();
  for (const resolve::TargetGpu& gpu : asked.target.gpus) gpus += gpu.count;
  for (const checks::Finding& one : checks::examine(asked.facts, knowledge).findings) {
    const bool whole = one.subject == checks::k_machine || one.subject == "container" ||
                       (gpus == 1 && starts_with(one.subject, "GPU "));
    if (one.severity == checks::Severity::error && whole && one.id != "no_nvidia_gpu")
      return report::finding_text(one, "title", lang, knowledge);
  }
  return {};
}

void name_ignored(report::ResolveView& view) {
  static const std::vector<std::string> k_known = {
      "torch", "torchvision", "torchaudio", "triton", "xformers", "flash-attn", "bitsandbytes"};
  for (const formats::Requirement& one : view.request.requirements) {
    if (resolve::is_judged(one)) continue;
    view.ignored.push_back(one.text);
    const std::vector<std::string> close = nearest(one.name, k_known, 1);
    if (!close.empty() && view.ignored_near.empty()) view.ignored_near = close[0];
  }
}

}  // namespace

std::span<const Option> resolve_options() { return k_resolve_options; }

int run_resolve(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Result<resolve::Request> request =
      read_request(arguments.all("REQUIREMENT"), arguments.get("python"));
  if (!request) return exit_code_for(request.error());
  request->default_index_only = arguments.has("default-index-only");
  Result<resolve::Policy> policy =
      read_policy(legacy_context(), arguments.get("policy"), host::working_folder());
  if (!policy) return exit_code_for(policy.error());
  request->policy = std::move(*policy);
  Result<std::optional<formats::IndexPage>> index = read_index(arguments);
  if (!index) return exit_code_for(index.error());
  request->index = std::move(*index);
  const Result<std::vector<AskedTarget>> targets =
      read_targets(legacy_context(), arguments.all("for"));
  if (!targets) return exit_code_for(targets.error());
  std::vector<resolve::Answer> answers;
  bool all = true;
  for (const AskedTarget& asked : *targets) {
    resolve::Request own = *request;
    own.installed = resolve::installed_wheels(asked.facts, knowledge);
    answers.push_back(resolve::resolve(asked.target, own, knowledge));
    all = all && resolve::served(answers.back());
  }
  report::ResolveView view{answers, *request, knowledge};
  const bool json = arguments.has("json");
  for (const AskedTarget& asked : *targets)
    view.obstacles.push_back(obstacle_of(asked, json ? "en" : language(arguments)));
  name_ignored(view);
  return print(json ? report::resolve_json(view) : report::resolve_text(view, style_for(arguments)),
               all ? k_ok : k_findings);
}

}  // namespace cufit::commands
