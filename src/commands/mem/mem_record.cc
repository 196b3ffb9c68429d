// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_record.h"

#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "host/files/host.h"
#include "host/files/paths.h"
#include "host/python/record_run.h"
#include "report/report.h"
#include "report/error_translation.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_record_options[] = {
    option<&MemRecordRequest::command>("COMMAND").needed(),
    option<&MemRecordRequest::out>("-o,--out", "DIR"),
    option<&MemRecordRequest::events>("--events", "N"),
    option<&MemRecordRequest::stacks>("--stacks", "KIND", "python all"),
    option<&MemRecordRequest::at_exit>("--at-exit"),
};

// An event with the stack that it came from takes about 1 KiB of the program's host memory.
constexpr uint64_t k_events = 250'000;
constexpr uint64_t k_mem_record_most_events = 100'000'000;

Result<host::RecordOptions> record_options(const Context& context,
                                           const MemRecordRequest& request) {
  host::RecordOptions options;
  options.command = request.command;
  options.events = k_events;
  options.stacks = request.stacks;
  options.at_exit = request.at_exit;
  if (request.events) {
    const std::optional<uint64_t> events = parse_uint(*request.events);
    if (!events || *events == 0 || *events > k_mem_record_most_events)
      return fail(Code::usage, format("`--events {}`: a number from 1 to {}", *request.events,
                                      k_mem_record_most_events));
    options.events = *events;
  }
  if (Result<void> made = host::create_folders(request.out); !made) return made.error();
  CUFIT_TRY(real, context.files.real_path(request.out));
  options.folder = std::move(real);
  for (const auto& [name, key] :
       {std::pair("WROTE", "wrote"), std::pair("OOM", "oom"), std::pair("NOT_YET", "not_yet"),
        std::pair("FAILED", "failed"), std::pair("OFF", "off")})
    options.sentences.emplace_back(
        name, context.knowledge.message(format("mem_record.{}", key), context.language()));
  return options;
}

void print_outcome(const host::RecordOutcome& outcome, const host::RecordOptions& options,
                   const Context& context) {
  const auto say = [&](std::string_view key, std::map<std::string, std::string> args) {
    context.output.print_message(context.message(format("mem_record.{}", key), args));
  };
  const auto worded = [&](const std::string& text) {
    return report::translated_error(text, context.language(), context.knowledge);
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
  // Where memory ran out several times, the last moment is the one to look at: what came before it
  // was caught, and the program went on.
  const auto last = [](const host::RecordedSnapshot& one) { return one.moment == one.moments; };
  for (const bool wanted : {true, false})
    for (const host::RecordedSnapshot& one : outcome.snapshots)
      if (last(one) == wanted)
        say(one.moments <= 1 ? "next"
            : wanted         ? "next_last"
                             : "earlier",
            {{"path", shell_word(one.path)},
             {"moment", std::to_string(one.moment)},
             {"moments", std::to_string(one.moments)}});
}

}  // namespace

std::span<const Option> mem_record_options() { return k_mem_record_options; }

int run_mem_record(const Context& context, const MemRecordRequest& request) {
  const Output& output = context.output;
  if (request.command.empty())
    return output.exit_code_for(fail(
        Code::usage, "`cufit mem record` needs a program: cufit mem record -- python train.py"));
  const Result<host::RecordOptions> options = record_options(context, request);
  if (!options) return output.exit_code_for(options.error());
  const Result<host::RecordOutcome> outcome = host::record_run(*options);
  if (!outcome) return output.exit_code_for(outcome.error());
  print_outcome(*outcome, *options, context);
  return outcome->exit_code;
}

}  // namespace cufit::commands
