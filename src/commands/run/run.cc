// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run.h"

#include <cstdio>

#include "base/format.h"
#include "commands/run/run_choice.h"
#include "commands/run/run_supervised.h"
#include "commands/settings.h"
#include "commands/resolve/targets.h"
#include "host/process/start_program.h"
#include "report/run.h"

namespace cufit::commands {
namespace {

constexpr Option k_run_options[] = {
    {"COMMAND", "", "", true, "", true}, {"--env", "CLASS", "", false, ""},
    {"--lock", "DIR", "", false, ""},    {"--policy", "FILE", "", false, ""},
    {"--supervise", "", "", false, ""},  {"--report", "FILE", "", false, ""},
    {"-q,--quiet", "", "", false, ""},
};

std::string run_message(std::string_view key, const Arguments& arguments,
                        const std::map<std::string, std::string>& args = {}) {
  return report::format_message(
      knowledge::Knowledge::builtin().message("run." + std::string(key), language(arguments)),
      args);
}

// "numpy" of "numpy>=1.26"
std::string requirement_name(const std::string& requirement) {
  return lower(requirement.substr(0, requirement.find_first_of("<>=!~;[( @,")));
}

int start(const RunChoice& choice, const FoundLock& found, const host::Host& machine,
          const Arguments& arguments) {
  const resolve::LockClass& chosen = found.lock.classes[choice.index];
  const host::RealHost here;
  SupervisedRequest launch;
  launch.class_name = chosen.name;
  launch.torch = chosen.wheel.torch;
  launch.env = choice.env;
  launch.is_cpu = chosen.wheel.is_cpu();
  launch.must_haves = {"torch"};
  for (const std::string& requirement : found.lock.requirements)
    launch.must_haves.push_back(requirement_name(requirement));
  launch.remake = create_command(found.folder, chosen.name);
  launch.start.variables = host::activated_variables(here, choice.env, chosen.name);
  launch.start.command = arguments.all("COMMAND");
  launch.start.sample_memory = choice.live.sight == resolve::LiveTarget::Sight::gpus;
  const host::FoundProgram program =
      host::find_program(launch.start.command[0], launch.start.variables);
  if (program.path.empty()) return not_started(program.failure, arguments);
  launch.start.program = program.path;
  if (arguments.has("supervise")) return run_supervised(launch, machine, arguments);
  return not_started(
      host::replace_process(program.path, launch.start.command, launch.start.variables), arguments);
}

}  // namespace

std::span<const Option> run_options() { return k_run_options; }

int run_run(const Arguments& arguments) {
  if (arguments.all("COMMAND").empty())
    return exit_code_for(fail(Code::usage, run_message("no_program", arguments)));
  if (arguments.has("report") && !arguments.has("supervise"))
    return exit_code_for(fail(Code::usage, run_message("report_alone", arguments)));
  const Result<std::optional<FoundLock>> found = find_lock(legacy_context(), arguments.get("lock"), arguments.has("quiet"));
  if (!found) return exit_code_for(found.error());
  if (!*found) return exit_code_for(fail(Code::usage, run_message("no_lock", arguments)));
  const Result<resolve::Policy> policy = read_policy(legacy_context(), arguments.get("policy"), (*found)->folder);
  if (!policy) return exit_code_for(policy.error());
  const host::RealHost machine = machine_to_run_on();
  const Result<RunChoice> choice = choose_class(**found, arguments.get("env"), *policy, machine);
  if (!choice) return exit_code_for(choice.error());
  const resolve::LockFile& lock = (*found)->lock;
  const report::RunView view{lock,          choice->live,      choice->routing,
                             choice->index, choice->asked_for, knowledge::Knowledge::builtin()};
  const std::string lang = language(arguments);
  if (choice->refusal) {
    std::fputs(report::refusal_text(*choice->refusal, view, lang).c_str(), stderr);
    return k_refused;
  }
  if (!arguments.has("quiet")) print_error(report::run_line(view, lang));
  return start(*choice, **found, machine, arguments);
}

}  // namespace cufit::commands
