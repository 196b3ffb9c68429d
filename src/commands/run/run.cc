// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/run/run_choice.h"
#include "commands/run/run_supervised.h"
#include "commands/run/run_vram.h"
#include "commands/run/run_wait.h"
#include "commands/resolve/targets.h"
#include "host/files/host_with_variables.h"
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
    option<&RunRequest::wait>("--wait"),
    option<&RunRequest::gpus>("--gpus", "N"),
    option<&RunRequest::timeout>("--timeout", "TIME"),
    option<&RunRequest::supervise>("--supervise"),
    option<&RunRequest::report>("--report", "FILE"),
    option<&RunRequest::quiet>("-q,--quiet"),
};

// "numpy" of "numpy>=1.26"
std::string requirement_name(const std::string& requirement) {
  return lower(requirement.substr(0, requirement.find_first_of("<>=!~;[( @,")));
}

VramOptions vram_options(const RunRequest& request) {
  return {*request.vram, request.share, request.by, request.spill, request.quiet};
}

// Finds the program, sets its limit, and becomes it or its parent. `place`: null = it waited for none.
int start(const Context& context, const RunRequest& request, SupervisedRequest launch,
          const std::optional<Version>& torch, Place* place) {
  const host::FoundProgram program = host::find_program(request.command[0], launch.start.variables);
  if (program.path.empty()) return not_started(context, program.failure);
  launch.start.command = request.command;
  launch.start.program = program.path;
  VramLimit limit;
  std::string domain;
  if (request.vram) {
    Result<VramLimit> made =
        limit_vram(context, vram_options(request), {program.path, request.command, torch}, launch.start.variables);
    if (!made) return context.output.exit_code_for(made.error());
    limit = std::move(*made);
    launch.ring_folder = limit.ring_folder;
    launch.limited = true;
    launch.ended = [&limit] { end_limit(limit); };
    domain = limit.domain.path;
  }
  if (place != nullptr && !request.quiet) context.output.print_message(place->line);
  const bool stays = request.supervise || !limit.mps.folder.empty();  // as the program's parent
  if (place != nullptr) leave_to_program(*place, domain, !stays);
  if (request.supervise) return run_supervised(context, launch, request.report.value_or(""));
  if (!limit.mps.folder.empty()) return run_attended(context, launch);
  const facts::StartFailure failure =
      host::replace_process(program.path, request.command, launch.start.variables);
  end_limit(limit);
  return not_started(context, failure);
}

int start_in_class(const Context& context, const RunRequest& request, const RunChoice& choice,
                   const FoundLock& found, Place* place) {
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
  return start(context, request, std::move(launch), parse_version(chosen.wheel.torch), place);
}

// Without a lock the program starts as it would without cufit, and has its limit.
int start_in_place(const Context& context, const RunRequest& request, Place* place) {
  SupervisedRequest launch;
  for (const auto& [name, value] : context.files.variables())
    launch.start.variables.push_back(name + "=" + value);
  launch.env = context.files.variable("VIRTUAL_ENV")
                   .value_or(context.files.variable("CONDA_PREFIX").value_or(""));
  return start(context, request, std::move(launch), std::nullopt, place);
}

report::RunView view_of(const Context& context, const FoundLock& found, const RunChoice& choice) {
  const bool here = found.folder == host::working_folder();
  return {found.lock,
          choice.live,
          choice.routing,
          choice.index,
          choice.asked_for,
          context.knowledge,
          here ? std::string() : found.folder};
}

int refuse(const Context& context, const FoundLock& found, const RunChoice& choice) {
  context.output.print_beside(
      report::refusal_text(*choice.refusal, view_of(context, found, choice), context.language()));
  return k_refused;
}

// `found`: null = without a lock.
int run_here(const Context& context, const RunRequest& request, const FoundLock* found,
             const resolve::Policy& policy, Place* place) {
  if (found == nullptr) return start_in_place(context, request, place);
  const Result<RunChoice> choice = choose_class(context, *found, request.env, policy);
  if (!choice) return context.output.exit_code_for(choice.error());
  if (choice->refusal) return refuse(context, *found, *choice);
  if (!request.quiet)
    context.output.print_error(
        report::run_line(view_of(context, *found, *choice), context.language()));
  return start_in_class(context, request, *choice, *found, place);
}

// This request as a command to copy. waits: as it is, and it waits. inherits: under the limit that this process has, on its
// GPUs, so without all that asks for others.
enum class Again { waits, inherits };
std::string command_again(const RunRequest& request, Again how, bool in_class) {
  const bool inherits = how == Again::inherits;
  std::vector<std::string> words;
  for (const std::string& word : request.command) words.push_back(shell_argument(word));
  const std::string program = join(words, " ");
  // What is left for cufit to do?
  if (inherits && !in_class && !request.supervise) return program;
  std::string out = "cufit run";
  if (!inherits) out += " --wait";
  const struct {
    const char* option;
    const std::optional<std::string>& value;
    bool of_limit;
  } options[] = {{"--vram", request.vram, true},     {"--share", request.share, true},
                 {"--spill", request.spill, true},   {"--gpus", request.gpus, true},
                 {"--lock", request.lock, false},    {"--policy", request.policy, false},
                 {"--report", request.report, false}};
  for (const auto& [option, value, of_limit] : options)
    if (value && !(inherits && of_limit)) out += format(" {} {}", option, shell_word(*value));
  if (request.by && !inherits) out += format(" --by {}", to_string(*request.by));
  if (!request.env.empty()) out += " --env " + shell_word(request.env);
  if (request.supervise) out += " --supervise";
  if (request.quiet) out += " -q";
  return out + " -- " + program;
}

// Waits for a place, then runs there. What would not start on any card is said before.
int run_placed(const Context& context, const RunRequest& request, const FoundLock* found,
               const resolve::Policy& policy) {
  const auto on_card = [](const host::Host& host, const std::string& uuids) {
    return host::HostWithVariables(host, {{"CUDA_VISIBLE_DEVICES", uuids}});
  };
  WaitOptions options{request.wait,
                      request.vram,
                      request.share,
                      request.gpus,
                      request.timeout,
                      request.quiet,
                      command_again(request, Again::waits, found != nullptr),
                      {}};
  if (auto problem = wait_words_problem(context, options))
    return context.output.exit_code_for(*problem);
  if (Result<void> good = check_report(request.report.value_or("")); !good)
    return context.output.exit_code_for(good.error());
  std::optional<RunChoice> first;
  std::vector<std::string> variables;
  if (found != nullptr) {
    Result<RunChoice> choice = choose_class(context, *found, request.env, policy);
    if (!choice) return context.output.exit_code_for(choice.error());
    first = std::move(*choice);
    if (!first->refusal) variables = host::activated_variables(context.files, first->env, "");
  } else {
    for (const auto& [name, value] : context.files.variables())
      variables.push_back(name + "=" + value);
  }
  if (!first || !first->refusal) {
    const host::FoundProgram program = host::find_program(request.command[0], variables);
    if (program.path.empty()) return not_started(context, program.failure);
    const std::optional<Version> torch =
        first ? parse_version(found->lock.classes[first->index].wheel.torch) : std::nullopt;
    if (request.vram)
      if (Result<void> good =
              check_vram(context, vram_options(request), {program.path, request.command, torch}, variables);
          !good)
        return context.output.exit_code_for(good.error());
  } else {
    // Different GPUs together may have no class, and each have one.
    options.suits = [&](const std::string& uuid) {
      const host::HostWithVariables files = on_card(context.files, uuid);
      const host::HostWithVariables machine = on_card(context.machine, uuid);
      const Context there{files, machine, context.knowledge, context.now, context.output};
      const Result<RunChoice> choice = choose_class(there, *found, request.env, policy);
      return choice && !choice->refusal;
    };
  }
  Waited waited = wait_for_place(context, options);
  if (waited.unsuited) return refuse(context, *found, *first);
  if (!waited.place) return waited.exit_code;
  const host::HostWithVariables files = on_card(context.files, waited.place->visible);
  const host::HostWithVariables machine = on_card(context.machine, waited.place->visible);
  const Context there{files, machine, context.knowledge, context.now, context.output};
  return run_here(there, request, found, policy, &*waited.place);
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
  const bool placed = request.wait || request.gpus;
  if (request.timeout && !request.wait) return refuse_usage("run.wait.timeout_alone");
  const Result<std::optional<FoundLock>> found = find_lock(context, request.lock, request.quiet);
  if (!found) return output.exit_code_for(found.error());
  if (!*found && (!(request.vram || placed || request.supervise) || !request.env.empty()))
    return refuse_usage("run.no_lock");
  if (request.vram)
    if (const std::string inside = context.files.variable("CUFIT_DOMAIN").value_or("");
        !inside.empty())
      return output.exit_code_for(fail(
          Code::usage,
          context.message("run.vram.nested", {{"file", shell_word(inside)},
                                              {"command", command_again(request, Again::inherits,
                                                                        found->has_value())}})));
  resolve::Policy allowed;
  if (*found) {
    Result<resolve::Policy> policy = read_policy(context, request.policy, (*found)->folder);
    if (!policy) return output.exit_code_for(policy.error());
    allowed = std::move(*policy);
  }
  const FoundLock* lock = *found ? &**found : nullptr;
  return placed ? run_placed(context, request, lock, allowed)
                : run_here(context, request, lock, allowed, nullptr);
}

}  // namespace cufit::commands
