// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_traces.h"

#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/fit/fit_tracing.h"
#include "fit/answer/two_programs.h"
#include "host/files/paths.h"

namespace cufit::commands {
namespace {

// What of an event file cannot answer; as of fit::trace_failure.
std::optional<fit::TraceFailure> file_failure(const formats::TraceEvents& events,
                                              const std::string& path,
                                              std::vector<fit::Warning>& warnings) {
  std::optional<fit::TraceFailure> failure = fit::trace_failure(&events, 0, "", warnings);
  if (!failure) return failure;
  if (failure->kind == "cut_off") {
    failure->kind = "file_cut_off";
    failure->next = "trace_again";
  }
  failure->program = path;
  failure->batch = parse_uint(events.fact("batch"));
  return failure;
}

Error different_programs(const fit::TwoPrograms& two, const std::vector<std::string>& paths) {
  const std::string &path = paths[0], &other = paths[two.other];
  if (two.name.empty())
    return fail(Code::usage, format("`--events`: {} and {} are traces of different programs: other "
                                    "weights, made at other lines; name those of one",
                                    path, other));
  return fail(Code::usage, format("`--events`: {} and {} are traces of different programs, `{}` "
                                  "and `{}`; name those of one",
                                  path, other, two.name, two.other_name));
}

Result<FitTraces> read_event_files(const host::Host& files, const std::vector<std::string>& paths,
                                   bool plan, const WorldsAsked& asked) {
  FitTraces out;
  std::vector<formats::TraceEvents> read;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    names.push_back(shell_word(path));
    CUFIT_TRY(source, files.open(path));
    CUFIT_TRY(events,
              formats::read_trace_events(std::shared_ptr<const ByteSource>(std::move(source))));
    out.failure = file_failure(events, path, out.traces.warnings);
    if (out.failure) return out;
    read.push_back(std::move(events));
  }
  if (const std::optional<fit::TwoPrograms> two = fit::two_programs(read))
    return different_programs(*two, paths);
  if (Result<void> done = take_ranks_apart(std::move(read), asked, out); !done) return done.error();
  if (out.traces.plain.empty())
    return fail(Code::usage,
                "`--events`: these are traces of plans; name those of the program as "
                "it is as well");
  fit::keep_micro_batches_apart(out.traces, plan);
  for (fit::RankTraces& rank : out.ranks) fit::keep_micro_batches_apart(rank.traces, false);
  out.program = join(names, " ");
  return out;
}

Result<void> without_program(const FitProgramRequest& program) {
  for (const auto& [option, given] :
       {std::pair("batch-arg", program.batch_arg.has_value()),
        std::pair("seq", program.seq.has_value()),
        std::pair("seq-arg", program.seq_arg.has_value()),
        std::pair("function", program.function.has_value()),
        std::pair("world", program.world.has_value()),
        std::pair("ranks", program.ranks.has_value()),
        std::pair("steps", program.steps.has_value()), std::pair("keep", program.keep.has_value()),
        std::pair("timeout", program.timeout.has_value())})
    if (given)
      return fail(Code::usage,
                  format("`--events` starts no program: `--{}` does not go with it", option));
  return {};
}

}  // namespace

Result<FitTraces> fit_traces(const Context& context, const FitProgramRequest& program,
                             const FitModelRequest& model, std::optional<uint64_t> batch,
                             const TracedGpu& gpu, const WorldsAsked& worlds) {
  std::vector<std::string> paths = program.events;
  if (paths.empty() && program.command.empty() && !program.function)
    return fail(Code::usage,
                "`cufit fit` needs a program: cufit fit --gpu \"RTX 3090\" -- python train.py");
  if (!model.train)
    if (Result<void> good = without_model(context.files, program.command, model); !good)
      return good.error();
  if (paths.empty() || model.train) {
    CUFIT_TRY(plan, tracing_plan(context.files, program, model, gpu));
    if (!plan.folder.empty()) {
      if (Result<void> made = host::create_folders(plan.folder); !made) return made.error();
      plan.folder = host::absolute_path(plan.folder);
    }
    return trace_ranks(context, std::move(plan), batch, worlds);
  }
  if (Result<void> good = without_program(program); !good) return good.error();
  // `--events a b`: an option takes one value, the others stand where a program would.
  paths.insert(paths.end(), program.command.begin(), program.command.end());
  return read_event_files(context.files, paths, program.plan, worlds);
}

}  // namespace cufit::commands
