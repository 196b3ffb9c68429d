// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/fit/fit_tracing.h"
#include "commands/fit/shell_words.h"
#include "fit/answer/plan_variants.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_idle_seconds = 600, k_most_seconds = 7 * 86400;
constexpr uint64_t k_steps = 3, k_least_steps = 2, k_most_steps = 100;
constexpr uint64_t k_most_tokens = 1u << 24;

// As it was typed; an option stays one (shell_word makes a path of it).
std::string typed(const std::string& word) {
  return starts_with(word, "-") ? shell_argument(word) : shell_word(word);
}

Result<void> read_function(const FitProgramRequest& program, TracingPlan& out) {
  out.run.function = program.function.value_or("");
  if (out.run.function.empty()) return {};
  if (!contains(out.run.function, ":"))
    return fail(Code::usage, format("`--function {}`: MODULE:NAME of a function make_step(batch)",
                                    out.run.function));
  if (program.batch_arg)
    return fail(Code::usage, "`--function` is given its batch size; leave `--batch-arg` out");
  if (out.command.empty()) out.command = {"python3"};
  return {};
}

Result<void> read_limits(const FitProgramRequest& program, host::TraceOptions& out) {
  out.steps = k_steps;
  if (program.steps) {
    const std::optional<uint64_t> steps = parse_uint(*program.steps);
    if (!steps || *steps < k_least_steps || *steps > k_most_steps)
      return fail(Code::usage, format("`--steps {}`: a number from {} to {}", *program.steps,
                                      k_least_steps, k_most_steps));
    out.steps = *steps;
    out.most_steps = *steps;
  }
  out.idle_seconds = k_idle_seconds;
  if (program.timeout) {
    const std::optional<uint64_t> seconds = parse_uint(*program.timeout);
    if (!seconds || *seconds > k_most_seconds)
      return fail(Code::usage, format("`--timeout {}`: seconds, up to {}; 0: no limit",
                                      *program.timeout, k_most_seconds));
    out.seconds = *seconds;
    out.idle_seconds = 0;
  }
  return {};
}

// Of `bash -c '...'` an option behind the text would come to the shell, not to the program, and of
// `bash train.sh` to the script alone.
Result<BatchArgument> argument_of(const host::Host& files, const FitProgramRequest& program,
                                  const std::string& text, const std::string& option) {
  CUFIT_TRY(argument, parse_batch_argument(text, option));
  const auto script = script_as_text(files, program.command);
  if (takes_appended(script ? *script : program.command, argument)) return argument;
  return fail(Code::usage,
              format("`--{} \"{}\"`: the shell's text does not have `{}`: write it there with a "
                     "number, or name the program itself behind `--`",
                     option, text, argument.name));
}

// The length of a sequence is written into the command, or the tracer sets it.
Result<void> read_sequence(const host::Host& files, const FitProgramRequest& program,
                           TracingPlan& out) {
  if (!program.seq) {
    if (!program.seq_arg) return {};
    return fail(Code::usage, "`--seq-arg` says how, `--seq N` how long");
  }
  const std::optional<uint64_t> tokens = parse_uint(*program.seq);
  if (!tokens || *tokens == 0 || *tokens > k_most_tokens)
    return fail(Code::usage,
                format("`--seq {}`: a number of tokens from 1 to {}", *program.seq, k_most_tokens));
  if (!program.seq_arg) {
    out.run.seq = tokens;
    return {};
  }
  CUFIT_TRY(argument, argument_of(files, program, *program.seq_arg, "seq-arg"));
  out.command = with_batch(out.command, argument, *tokens);
  return {};
}

}  // namespace

Result<TracingPlan> tracing_plan(const host::Host& files, const FitProgramRequest& program,
                                 const FitModelRequest& model, const TracedGpu& gpu) {
  TracingPlan out;
  out.run.gpu = gpu.pretended;
  out.run.cudnn = out.run.device = gpu.cudnn_devices;
  out.plans = program.plan;
  out.traced_for = gpu.cc;
  if (program.plan) out.run.variant = fit::k_plan_variant;
  out.command = program.command;
  if (Result<void> done = read_function(program, out); !done) return done.error();
  if (Result<void> done = read_limits(program, out.run); !done) return done.error();
  if (program.batch_arg) {
    CUFIT_TRY(argument, argument_of(files, program, *program.batch_arg, "batch-arg"));
    out.argument = argument;
  }
  if (program.keep) out.folder = *program.keep;
  FitProgramRequest asked = program;
  if (model.train && model.ranks_of_model) {
    if (program.world)
      return fail(Code::usage, "`--gpus` and `--world` say the same: leave one out");
    asked.world = model.ranks_of_model;
  }
  CUFIT_TRY(ranks, ranks_wanted(asked, model.ranks_of_model ? "gpus" : "world"));
  out.ranks = std::move(ranks);
  if (model.train) {
    CUFIT_TRY(built, fit_model(files, asked, model, gpu.cc));
    if (built.strategy) {
      CUFIT_TRY(dealt, ranks_of_strategy(std::move(out.ranks), *built.strategy, gpu.all_cards));
      out.ranks = std::move(dealt);
    }
    out.run.model = std::move(built.json);
    out.command = std::move(built.command);
    out.program = std::move(built.title);
    return out;
  }
  if (Result<void> done = read_sequence(files, program, out); !done) return done.error();
  std::vector<std::string> words;
  for (const std::string& word : out.command) words.push_back(typed(word));
  if (!out.run.function.empty()) words.push_back(shell_word(out.run.function));
  out.program = join(words, " ");
  // What stands in a script cannot be set by an option behind its name.
  if (out.argument && !has_option(out.command, *out.argument))
    if (const auto script = script_as_text(files, out.command);
        script && has_option(*script, *out.argument))
      out.command = *script;
  return out;
}

}  // namespace cufit::commands
