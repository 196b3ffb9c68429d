// SPDX-License-Identifier: Apache-2.0
#include "commands/run/preflight.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/doctor.h"
#include "checks/torch_env.h"
#include "commands/run/preflight_subject.h"
#include "commands/resolve/targets.h"
#include "host/files/paths.h"
#include "host/probe.h"
#include "host/process/this_process.h"
#include "report/preflight.h"
#include "report/resolve.h"

namespace cufit::commands {
namespace {

using checks::Severity;
using knowledge::Knowledge;
using Answer = report::PreflightView::Answer;

constexpr Option k_preflight_options[] = {
    option<&PreflightRequest::env>("--env", "DIR|CLASS"),
    option<&PreflightRequest::lock>("--lock", "DIR"),
    option<&PreflightRequest::policy>("--policy", "FILE"),
    option<&PreflightRequest::json>("--json"),
    option<&PreflightRequest::machine>("--machine"),
    option<&PreflightRequest::quiet>("-q,--quiet"),
};

// The driver says which devices this process sees; what it hides takes no part in the verdict, and
// the variable that hides has then been obeyed.
void leave_hidden_out(facts::Facts& facts) {
  if (!facts.cuda.init_result || *facts.cuda.init_result != 0 || facts.cuda.devices.empty()) return;
  if (!checks::has_variable(facts, "CUDA_VISIBLE_DEVICES")) return;
  std::vector<std::string> shown;
  for (const facts::CudaDevice& device : facts.cuda.devices) {
    if (!device.pci_address) return;  // nothing tells which ones they are
    shown.push_back(lower(*device.pci_address));
  }
  const auto hidden = [&](const std::string& address) {
    return std::find(shown.begin(), shown.end(), lower(address)) == shown.end();
  };
  std::erase_if(facts.nvml.gpus, [&](const facts::NvmlGpu& gpu) {
    return gpu.pci_address && hidden(*gpu.pci_address);
  });
  if (facts.pci)
    std::erase_if(*facts.pci.value, [&](const facts::PciGpu& function) {
      return starts_with(function.class_code, "03") && hidden(function.address);
    });
  std::erase_if(facts.variables, [](const facts::EnvVariable& variable) {
    return variable.name == "CUDA_VISIBLE_DEVICES";
  });
}

facts::Facts read_facts(const host::Host& machine, const PreflightSubject& subject) {
  host::ProbeOptions options;
  if (!subject.env.empty()) options.env_dirs = {subject.env};
  options.driver_depth = host::DriverDepth::state;
  facts::Facts facts = host::collect(machine, options);
  leave_hidden_out(facts);
  return facts;
}

bool hides_all(const facts::Facts& facts) {
  const std::string value = checks::variable(facts, "CUDA_VISIBLE_DEVICES");
  return checks::has_variable(facts, "CUDA_VISIBLE_DEVICES") &&
         (trim(value).empty() || value == "-1" || value == "NoDevFiles");
}

// without_gpu: a CPU torch where no GPU is wanted, so only what is wrong inside the environment
// counts. machine: only the machine's own defects, whatever is installed on it.
enum class About { all, without_gpu, machine };

bool counts(const checks::Finding& finding, About about, const Knowledge& knowledge) {
  if (about == About::all) return true;
  if (about == About::machine && finding.id == "dev_nodes_missing") return true;
  if (finding.id == "torch_not_cuda_build" || finding.id == "cuda_visible_devices") return false;
  const knowledge::FindingTexts* texts = knowledge.find_texts(finding.id);
  const std::vector<std::string_view> categories =
      about == About::machine
          ? std::vector<std::string_view>{"kernel-driver", "hardware"}
          : std::vector<std::string_view>{"environment", "torch-build", "libraries", "extension"};
  return texts != nullptr &&
         std::find(categories.begin(), categories.end(), texts->category) != categories.end();
}

std::vector<resolve::Reason> forbidden_by(const resolve::Policy& policy, const facts::Facts& facts,
                                          const facts::PythonEnv* env, const checks::Input& input,
                                          const Knowledge& knowledge) {
  std::vector<resolve::Reason> out =
      resolve::forbids(policy, resolve::target_of(facts, knowledge, "this machine"), knowledge);
  const auto add = [&](std::vector<resolve::Reason> more) {
    for (resolve::Reason& reason : more) out.push_back(std::move(reason));
  };
  if (env == nullptr) return out;
  const checks::TorchBuild build = checks::torch_build_of(input, *env);
  if (!build.release.empty()) {
    resolve::Wheel wheel;
    wheel.torch = build.release;
    wheel.tag = build.kind == "cpu" ? "cpu" : build.tag;
    add(resolve::forbids(policy, wheel));
  }
  if (env->python) {
    const auto version = parse_version(*env->python);
    if (version && version->parts.size() >= 2) add(resolve::forbids_python(policy, *env->python));
  }
  if (env->distributions)
    for (const facts::Distribution& each : *env->distributions)
      if (!each.installer.empty()) add(resolve::forbids_owner(policy, each.name, each.installer));
  return out;
}

int exit_code(Answer answer) {
  return answer == Answer::good ? k_ok : answer == Answer::unknown ? k_failed : k_findings;
}

int print_answer(const Context& context, const PreflightRequest& request,
                 const report::PreflightView& view) {
  const int code = exit_code(view.answer);
  if (request.json) return context.output.print(report::preflight_json(view), code);
  if (request.quiet && view.answer == Answer::good) return code;
  return context.output.print(report::preflight_text(view, context.language()), code);
}

// Refused before anything could be judged. Who asked for JSON reads no other stream.
int refuse(const Context& context, const PreflightRequest& request, const Error& error) {
  if (!request.json) return context.output.exit_code_for(error);
  report::PreflightView view;
  view.knowledge = &context.knowledge;
  view.machine_only = request.machine;
  view.said_id = "not_judged";
  view.said = error.text();
  const int code = context.output.exit_code_for(error);
  return context.output.print(report::preflight_json(view), code);
}

std::string machine_text(const facts::Facts& facts, const std::string& lang,
                         const Knowledge& knowledge) {
  const resolve::Target target = resolve::target_of(facts, knowledge, "");
  const std::string gpus = resolve::gpus_text(target);
  if (gpus.empty()) return std::string(knowledge.message("preflight.no_gpu", lang));
  if (!target.driver) return gpus;
  return report::message(knowledge, "run.sight.gpus", lang,
                         {{"gpus", gpus}, {"driver", resolve::driver_text(*target.driver)}});
}

// The finding that decides, and how many more of its kind there are.
void take_cause(const checks::Report& report, Severity severity, About about,
                report::PreflightView& view) {
  for (const checks::Finding& finding : report.findings) {
    if (finding.severity != severity || !counts(finding, about, *view.knowledge)) continue;
    if (view.cause != nullptr) ++view.further_errors;
    if (view.cause == nullptr) view.cause = &finding;
  }
}

// For schedulers that take a node out of service: no environment, no lock and no policy is judged.
int judge_machine(const Context& context, const PreflightRequest& request,
                  const std::string& lang) {
  for (const auto& [name, value] :
       {std::pair("env", &request.env), std::pair("lock", &request.lock),
        std::pair("policy", &request.policy)})
    if (*value)
      return refuse(context, request,
                    fail(Code::usage, format("`--machine` judges no environment: `--{}` has no "
                                             "place beside it",
                                             name)));
  report::PreflightView view;
  view.knowledge = &context.knowledge;
  view.machine_only = true;
  const facts::Facts facts = read_facts(context.machine, PreflightSubject());
  view.machine = machine_text(facts, lang, context.knowledge);
  const checks::Report report = checks::examine(facts, *view.knowledge);
  take_cause(report, Severity::error, About::machine, view);
  view.answer = view.cause == nullptr ? Answer::good : Answer::not_ready;
  if (view.cause == nullptr) {
    take_cause(report, Severity::unknown, About::machine, view);
    view.said_id = "no_gpu";
    view.said = view.machine;
    if (view.cause != nullptr || checks::make_input(facts, *view.knowledge).gpus.empty())
      view.answer = Answer::unknown;  // nothing wrong was found, and no GPU either
  }
  return print_answer(context, request, view);
}

}  // namespace

std::span<const Option> preflight_options() { return k_preflight_options; }

int run_preflight(const Context& context, const PreflightRequest& request) {
  const Knowledge& knowledge = context.knowledge;
  const std::string lang = request.json ? "en" : context.language();
  if (request.machine) return judge_machine(context, request, lang);
  const Result<PreflightSubject> subject = find_subject(context, request);
  if (!subject) return refuse(context, request, subject.error());
  report::PreflightView view;
  view.knowledge = &knowledge;
  view.env = subject->env;
  view.class_name = subject->class_name;
  view.said_id = subject->said_id;
  view.said = subject->said;
  view.machine = subject->machine;
  view.next = subject->next;
  if (!subject->said.empty()) {
    view.answer = Answer::not_ready;
    return print_answer(context, request, view);
  }
  const Result<resolve::Policy> policy =
      read_policy(context, request.policy,
                  subject->lock_folder.empty() ? host::working_folder() : subject->lock_folder);
  if (!policy) return refuse(context, request, policy.error());
  const facts::Facts facts = read_facts(context.machine, *subject);
  const checks::Input input = checks::make_input(facts, knowledge);
  const facts::PythonEnv* env = checks::main_env(facts);
  view.machine = machine_text(facts, lang, context.knowledge);
  if (env != nullptr) {
    view.env = env->path;
    view.torch = env->torch.version.value_or("");
  }
  const bool cpu_torch = env != nullptr && checks::torch_build_of(input, *env).kind == "cpu";
  const bool without_gpu =
      subject->cpu_class || (cpu_torch && (input.gpus.empty() || hides_all(facts)));
  view.forbidden = forbidden_by(*policy, facts, env, input, knowledge);
  const checks::Report report = checks::examine(facts, knowledge);
  if (!view.forbidden.empty()) {
    view.answer = Answer::not_ready;
    view.next = "cufit resolve";  // what the policy leaves for this machine
    if (request.policy) view.next += " --policy " + shell_word(*request.policy);
    return print_answer(context, request, view);
  }
  const About about = without_gpu ? About::without_gpu : About::all;
  take_cause(report, Severity::error, about, view);
  const bool no_torch = env == nullptr || !checks::has_torch(*env);
  if (no_torch && (view.cause == nullptr || view.cause->id == "torch_not_installed" ||
                   view.cause->id == "no_python_env"))
    view.next = way_to_torch(*subject);
  if (view.cause != nullptr) {
    view.answer = Answer::not_ready;
  } else if (no_torch) {
    view.answer = subject->env.empty() ? Answer::unknown : Answer::not_ready;
    view.said_id = "no_torch";
    view.said = report::message(knowledge, "preflight.no_torch", lang,
                                {{"env", view.env.empty() ? "PATH" : view.env}});
  } else if (report.verdict == checks::LinkState::unknown && !without_gpu) {
    take_cause(report, Severity::unknown, about, view);
    view.said_id = "not_told";
    if (view.cause == nullptr) view.said = knowledge.message("preflight.not_told", lang);
  } else {
    view.answer = Answer::good;
  }
  return print_answer(context, request, view);
}

}  // namespace cufit::commands
