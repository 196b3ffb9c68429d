// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_record.h"

#include <cstdio>

#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/settings.h"
#include "host/files/host.h"
#include "host/python/record_run.h"
#include "report/report.h"
#include "report/error_translation.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_record_options[] = {
    {"COMMAND", "", "", true, "", true}, {"-o,--out", "DIR", "", false, ""},
    {"--events", "N", "", false, ""},    {"--stacks", "KIND", "", false, "python all"},
    {"--at-exit", "", "", false, ""},
};

// An event with the stack that it came from takes about 1 KiB of the program's host memory.
constexpr uint64_t k_events = 250'000;
constexpr uint64_t k_mem_record_most_events = 100'000'000;

Result<host::RecordOptions> options_of(const Arguments& arguments) {
  host::RecordOptions options;
  options.command = arguments.all("COMMAND");
  options.events = k_events;
  options.stacks = arguments.get("stacks", "python");
  options.at_exit = arguments.has("at-exit");
  if (arguments.has("events")) {
    const std::optional<uint64_t> events = parse_uint(arguments.get("events"));
    if (!events || *events == 0 || *events > k_mem_record_most_events)
      return fail(Code::usage, format("`--events {}`: a number from 1 to {}",
                                      arguments.get("events"), k_mem_record_most_events));
    options.events = *events;
  }
  const host::RealHost machine;
  const std::string folder = arguments.get("out", ".");
  Result<std::string> real = machine.real_path(folder);
  if (!real) return fail(Code::usage, format("`--out {}`: no such folder", folder));
  options.folder = std::move(*real);
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  for (const auto& [name, key] :
       {std::pair("WROTE", "wrote"), std::pair("OOM", "oom"), std::pair("NOT_YET", "not_yet"),
        std::pair("FAILED", "failed"), std::pair("OFF", "off")})
    options.sentences.emplace_back(
        name, knowledge.message(format("mem_record.{}", key), language(arguments)));
  return options;
}

void print_outcome(const host::RecordOutcome& outcome, const host::RecordOptions& options,
                   const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  const auto say = [&](std::string_view key, std::map<std::string, std::string> args) {
    const std::string text = report::format_message(
        knowledge.message(format("mem_record.{}", key), language(arguments)), args);
    std::fprintf(stderr, "cufit: %s\n", text.c_str());
  };
  const auto worded = [&](const std::string& text) {
    return report::translated_error(text, language(), knowledge);
  };
  for (const std::string& failure : outcome.failures) say("failed", {{"why", worded(failure)}});
  for (const std::string& why : outcome.unwritten) say("unwritten", {{"why", worded(why)}});
  if (outcome.snapshots.empty()) {
    const char* why = outcome.pythons == 0     ? "no_python"
                      : outcome.recording == 0 ? "no_cuda"
                      : options.at_exit        ? "no_end"
                                               : "no_oom";
    if (outcome.failures.empty() && outcome.unwritten.empty())
      say(why, {{"processes", std::to_string(outcome.recording)}});
    return;
  }
  for (const std::string& path : outcome.snapshots) say("next", {{"path", shell_word(path)}});
}

}  // namespace

std::span<const Option> mem_record_options() { return k_mem_record_options; }

int run_mem_record(const Arguments& arguments) {
  if (arguments.all("COMMAND").empty())
    return exit_code_for(fail(
        Code::usage, "`cufit mem record` needs a program: cufit mem record -- python train.py"));
  const Result<host::RecordOptions> options = options_of(arguments);
  if (!options) return exit_code_for(options.error());
  const Result<host::RecordOutcome> outcome = host::record_run(*options);
  if (!outcome) return exit_code_for(outcome.error());
  print_outcome(*outcome, *options, arguments);
  return outcome->exit_code;
}

}  // namespace cufit::commands
