// SPDX-License-Identifier: Apache-2.0
#include "commands/launch_supervised.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/settings.h"
#include "commands/write_file.h"
#include "explain/explain.h"
#include "host/probe.h"
#include "report/death.h"
#include "report/explain.h"

namespace cufit::commands {
namespace {

using knowledge::Knowledge;

std::string message(std::string_view key, const Arguments& arguments,
                    const std::map<std::string, std::string>& args) {
  return report::fill(Knowledge::builtin().message(key, language(arguments)), args);
}

std::string utc(const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, form, &parts));
}

// The user ended it, or whoever read its output did: nothing has failed.
bool is_failure(const host::Supervised& run) {
  return run.exit_code != 0 && !run.asked_to_end && run.signal != SIGPIPE;
}

host::Facts facts_after(const host::Host& machine, const std::string& env) {
  host::ProbeOptions options;
  options.env_dirs = {env};
  // A compute check would be counted among the memory in use.
  options.driver_depth = host::DriverDepth::state;
  return host::collect(machine, options);
}

explain::Explanation explain_end(const host::Supervised& run, const host::Facts& facts) {
  const Knowledge& knowledge = Knowledge::builtin();
  explain::Explainer explainer(knowledge);
  explainer.begin("output");
  explainer.add(report::plain_tail(run.tail));
  // A program that is killed says nothing; how it ended is then all there is.
  if (run.signal != 0) {
    explainer.begin("end");
    explainer.add(report::end_text(run, "en", knowledge) + "\n");
  }
  explain::Options options;
  options.name = "output";
  options.beside = &facts;
  return explainer.finish(options);
}

std::string json_name(const std::string& text_name) {
  return (ends_with(text_name, ".txt") ? text_name.substr(0, text_name.size() - 4) : text_name) +
         ".json";
}

void write_report(const report::DeathView& view, const Arguments& arguments) {
  report::Style style = style_for(arguments);
  style.colour = false;
  style.verbose = true;
  style.width = 100;
  const std::string name = arguments.get(
      "report", format("cufit-report-{}-{}.txt", utc("%Y%m%dT%H%M%SZ"), view.run.pid));
  for (const auto& [path, text] : {std::pair(name, report::death_text(view, style)),
                                   std::pair(json_name(name), report::death_json(view))}) {
    if (auto written = write_whole_file(path, text); !written) {
      complain(written.error().text());
      return;
    }
  }
  complain(message("death.written", arguments,
                   {{"file", shell_word(name)}, {"json", shell_word(json_name(name))}}));
}

void explain_death(const SupervisedLaunch& launch, const host::Supervised& run,
                   const host::Host& machine, const Arguments& arguments) {
  const Knowledge& knowledge = Knowledge::builtin();
  const std::string time = utc("%Y-%m-%dT%H:%M:%SZ");
  const host::Facts after = facts_after(machine, launch.env);
  const explain::Explanation explanation = explain_end(run, after);
  const report::DeathView view{
      run,  explanation,       after,        knowledge, launch.start.command,
      time, launch.class_name, launch.torch, launch.env};
  report::Style style = style_for(arguments);
  style.colour = style.colour && isatty(STDERR_FILENO);
  complain(
      message("death.ended", arguments, {{"end", report::end_text(run, style.lang, knowledge)}}));
  std::fputs(report::explain_text({explanation, knowledge, false}, style).c_str(), stderr);
  write_report(view, arguments);
}

}  // namespace

int not_started(const host::StartFailure& failure, const Arguments& arguments) {
  complain(message("run.start." + failure.reason, arguments,
                   {{"program", failure.program}, {"detail", failure.detail}}));
  return failure.exit_code;
}

int launch_supervised(const SupervisedLaunch& launch, const host::Host& machine,
                      const Arguments& arguments) {
  const Result<host::Supervised> run = host::supervise(machine, launch.start);
  if (!run) return give_up(run.error());
  if (run->not_started) return not_started(*run->not_started, arguments);
  if (is_failure(*run)) explain_death(launch, *run, machine, arguments);
  // A shell goes on with its loop where Ctrl-C ended the program and this process merely returned.
  if (run->signal == SIGINT) {
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
  return run->exit_code;
}

}  // namespace cufit::commands
