// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run.h"

#include "base/format.h"
#include "commands/run/run_choice.h"
#include "commands/run/run_supervised.h"
#include "commands/run/run_vram.h"
#include "commands/resolve/targets.h"
#include "host/files/paths.h"
#include "host/process/start_program.h"
#include "report/run.h"

namespace cufit::commands {
namespace {

constexpr Option k_run_options[] = {
    option<&RunRequest::command>("COMMAND").needed(),
    option<&RunRequest::env>("--env", "CLASS"),
    option<&RunRequest::lock>("--lock", "DIR"),
    option<&RunRequest::policy>("--policy", "FILE"),
    option<&RunRequest::vram>("--vram", "SIZE"),
    option<&RunRequest::share>("--share", "NAME"),
    option<&RunRequest::spill>("--spill", "WHAT"),
    option<&RunRequest::by>("--by", "HOLDER", "guard mps torch"),
    option<&RunRequest::supervise>("--supervise"),
    option<&RunRequest::report>("--report", "FILE"),
    option<&RunRequest::quiet>("-q,--quiet"),
};

// "numpy" of "numpy>=1.26"
std::string requirement_name(const std::string& requirement) {
  return lower(requirement.substr(0, requirement.find_first_of("<>=!~;[( @,")));
}

// Finds the program, sets its limit, and becomes it or its parent.
int start(const Context& context, const RunRequest& request, SupervisedRequest launch,
          const std::optional<Version>& torch) {
  const host::FoundProgram program = host::find_program(request.command[0], launch.start.variables);
  if (program.path.empty()) return not_started(context, program.failure);
  launch.start.command = request.command;
  launch.start.program = program.path;
  VramLimit limit;
  if (request.vram) {
    Result<VramLimit> made = limit_vram(
        context, {*request.vram, request.share, request.by, request.spill, request.quiet},
        {program.path, torch}, launch.start.variables);
    if (!made) return context.output.exit_code_for(made.error());
    limit = std::move(*made);
    launch.ring_folder = limit.ring_folder;
    launch.ended = [&limit] { end_limit(limit); };
  }
  if (request.supervise) return run_supervised(context, launch, request.report.value_or(""));
  if (!limit.mps.folder.empty()) return run_attended(context, launch);
  const facts::StartFailure failure =
      host::replace_process(program.path, request.command, launch.start.variables);
  end_limit(limit);
  return not_started(context, failure);
}

int start_in_class(const Context& context, const RunRequest& request, const RunChoice& choice,
                   const FoundLock& found) {
  const resolve::LockClass& chosen = found.lock.classes[choice.index];
  SupervisedRequest launch;
  launch.class_name = chosen.name;
  launch.torch = chosen.wheel.torch;
  launch.env = choice.env;
  launch.is_cpu = chosen.wheel.is_cpu();
  launch.must_haves = {"torch"};
  for (const std::string& requirement : found.lock.requirements)
    launch.must_haves.push_back(requirement_name(requirement));
  launch.remake = create_command(found.folder, chosen.name);
  launch.start.variables = host::activated_variables(context.files, choice.env, chosen.name);
  launch.start.sample_memory = choice.live.sight == resolve::LiveTarget::Sight::gpus;
  return start(context, request, std::move(launch), parse_version(chosen.wheel.torch));
}

// Without a lock the program starts as it would without cufit, and has its limit.
int start_in_place(const Context& context, const RunRequest& request) {
  SupervisedRequest launch;
  for (const auto& [name, value] : context.files.variables())
    launch.start.variables.push_back(name + "=" + value);
  launch.env = context.files.variable("VIRTUAL_ENV")
                   .value_or(context.files.variable("CONDA_PREFIX").value_or(""));
  return start(context, request, std::move(launch), std::nullopt);
}

}  // namespace

std::span<const Option> run_options() { return k_run_options; }

int run_run(const Context& context, const RunRequest& asked) {
  RunRequest request = asked;
  // All of each card, unless something is said.
  if (request.spill && !request.vram) request.vram = "100%";
  const Output& output = context.output;
  const auto refuse_usage = [&](std::string_view key) {
    return output.exit_code_for(fail(Code::usage, context.message(key)));
  };
  if (request.command.empty()) return refuse_usage("run.no_program");
  if (request.report && !request.supervise) return refuse_usage("run.report_alone");
  if (request.share && !request.vram) return refuse_usage("run.share_alone");
  if (request.by && !request.vram) return refuse_usage("run.by_alone");
  const Result<std::optional<FoundLock>> found = find_lock(context, request.lock, request.quiet);
  if (!found) return output.exit_code_for(found.error());
  if (!*found && request.vram && request.env.empty()) return start_in_place(context, request);
  if (!*found) return refuse_usage("run.no_lock");
  const Result<resolve::Policy> policy = read_policy(context, request.policy, (*found)->folder);
  if (!policy) return output.exit_code_for(policy.error());
  const Result<RunChoice> choice = choose_class(context, **found, request.env, *policy);
  if (!choice) return output.exit_code_for(choice.error());
  const bool here = (*found)->folder == host::working_folder();
  const report::RunView view{(*found)->lock,
                             choice->live,
                             choice->routing,
                             choice->index,
                             choice->asked_for,
                             context.knowledge,
                             here ? std::string() : (*found)->folder};
  if (choice->refusal) {
    output.print_beside(report::refusal_text(*choice->refusal, view, context.language()));
    return k_refused;
  }
  if (!request.quiet) output.print_error(report::run_line(view, context.language()));
  return start_in_class(context, request, *choice, **found);
}

}  // namespace cufit::commands
