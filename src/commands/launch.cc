// SPDX-License-Identifier: Apache-2.0
#include "commands/launch.h"

#include <cstdio>

#include "base/format.h"
#include "commands/launch_choice.h"
#include "commands/launch_supervised.h"
#include "commands/settings.h"
#include "commands/targets.h"
#include "host/start_program.h"
#include "report/launch.h"

namespace cufit::commands {
namespace {

constexpr Option k_options[] = {
    {"COMMAND", "", "", true, "", true}, {"--env", "CLASS", "", false, ""},
    {"--lock", "DIR", "", false, ""},    {"--policy", "FILE", "", false, ""},
    {"--supervise", "", "", false, ""},  {"--report", "FILE", "", false, ""},
    {"-q,--quiet", "", "", false, ""},
};

std::string message(std::string_view key, const Arguments& arguments,
                    const std::map<std::string, std::string>& args = {}) {
  return report::fill(
      knowledge::Knowledge::builtin().message("run." + std::string(key), language(arguments)),
      args);
}

// "numpy" of "numpy>=1.26"
std::string requirement_name(const std::string& requirement) {
  return lower(requirement.substr(0, requirement.find_first_of("<>=!~;[( @,")));
}

int start(const LaunchChoice& choice, const FoundLock& found, const host::Host& machine,
          const Arguments& arguments) {
  const resolve::LockClass& chosen = found.lock.classes[choice.index];
  const host::RealHost here;
  SupervisedLaunch launch;
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
  if (arguments.has("supervise")) return launch_supervised(launch, machine, arguments);
  return not_started(
      host::replace_process(program.path, launch.start.command, launch.start.variables), arguments);
}

}  // namespace

std::span<const Option> launch_options() { return k_options; }

int run_launch(const Arguments& arguments) {
  if (arguments.all("COMMAND").empty())
    return give_up(fail(Code::usage, message("no_program", arguments)));
  if (arguments.has("report") && !arguments.has("supervise"))
    return give_up(fail(Code::usage, message("report_alone", arguments)));
  const Result<std::optional<FoundLock>> found = find_lock(arguments);
  if (!found) return give_up(found.error());
  if (!*found) return give_up(fail(Code::usage, message("no_lock", arguments)));
  const Result<resolve::Policy> policy = read_policy(arguments, (*found)->folder);
  if (!policy) return give_up(policy.error());
  const host::RealHost machine = machine_to_launch_on();
  const Result<LaunchChoice> choice = choose_class(**found, arguments.get("env"), *policy, machine);
  if (!choice) return give_up(choice.error());
  const resolve::LockFile& lock = (*found)->lock;
  const report::LaunchView view{lock,          choice->live,      choice->routing,
                                choice->index, choice->asked_for, knowledge::Knowledge::builtin()};
  const std::string lang = language(arguments);
  if (choice->refusal) {
    std::fputs(report::refusal_text(*choice->refusal, view, lang).c_str(), stderr);
    return k_refused;
  }
  if (!arguments.has("quiet")) complain(report::launch_line(view, lang));
  return start(*choice, **found, machine, arguments);
}

}  // namespace cufit::commands
