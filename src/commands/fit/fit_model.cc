// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_model.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/fit/model_files.h"
#include "fit/answer/cards.h"
#include "fit/model_spec.h"

namespace cufit::commands {
namespace {

Result<uint64_t> model_number(const char* option, const std::optional<std::string>& text) {
  if (!text) return uint64_t{0};
  const std::optional<uint64_t> value = parse_uint(*text);
  if (!value || *value == 0)
    return fail(Code::usage, format("`--{} {}`: a number from 1 on", option, *text));
  return *value;
}

// `several`: on more than one GPU.
Result<fit::Training> training_of(const FitModelRequest& model, bool several,
                                  const std::optional<std::string>& seq,
                                  const std::optional<ComputeCapability>& traced_for) {
  CUFIT_TRY(training, fit::parse_training(model.train.value_or("")));
  CUFIT_TRY(sequence, model_number("seq", seq));
  CUFIT_TRY(resolution, model_number("res", model.res));
  training.sequence = sequence;
  training.resolution = resolution;
  training.dtype = model.dtype.value_or("");
  training.optimizer = model.optimizer.value_or("");
  training.checkpointing = model.checkpointing.value_or("");
  training.lora_targets = model.lora_targets.value_or("");
  if (model.strategy) {
    CUFIT_TRY(strategy, fit::parse_strategy(*model.strategy));
    training.strategy = std::move(strategy);
  } else if (several) {
    training.strategy = fit::usual_strategy(training.method);
  }
  if (traced_for) training.bfloat = *traced_for >= fit::k_first_with_bf16;
  return training;
}

Result<fit::ModelKind> kind_of(const ModelFiles& found, const std::string& path) {
  const std::string why = fit::not_a_model(found.tensors);
  if (why == "lora" || (found.config && found.config->adapter))
    return fail(Code::unsupported,
                format("{}: a LoRA, not a model{}; name the model that it belongs to", path,
                       found.config && !found.config->base_model.empty()
                           ? format(" (of `{}`)", found.config->base_model)
                           : std::string()));
  if (found.config) return fit::kind_of_config(*found.config, found.tensors);
  fit::ModelKind kind = fit::kind_of_tensors(found.tensors);
  if (!kind.architecture.empty()) return kind;
  if (why == "sd3" || why == "refiner")
    return fail(Code::unsupported,
                format("{}: this model cannot be told from one file alone; name its folder in the "
                       "layout of diffusers, with transformer/config.json or unet/config.json",
                       path));
  return fail(Code::unsupported,
              format("{}: its tensors are not those of a checkpoint that cufit knows, and there is "
                     "no config.json beside them that says what they are",
                     path));
}

// Plans begin with a copy on each rank, and say what else there is.
Result<void> plan_of_model(const FitProgramRequest& program, const FitModelRequest& model,
                           fit::Training& training) {
  if (!program.plan) return {};
  if (model.strategy)
    return fail(Code::usage, "`--plan` compares strategies of a model: leave `--strategy` out");
  const std::optional<uint64_t> world = parse_uint(program.world.value_or("1"));
  if (!world || *world < 2)
    return fail(Code::usage, "`--plan` of a model needs one number of GPUs, from 2 on: `--gpus 8`");
  CUFIT_TRY(copies, fit::parse_strategy("ddp"));
  training.strategy = std::move(copies);
  return {};
}

}  // namespace

Result<void> without_model(const host::Host& files, const std::vector<std::string>& command,
                           const FitModelRequest& model) {
  for (const auto& [option, given] :
       {std::pair("res", model.res.has_value()), std::pair("dtype", model.dtype.has_value()),
        std::pair("optimizer", model.optimizer.has_value()),
        std::pair("checkpointing", model.checkpointing.has_value()),
        std::pair("lora-targets", model.lora_targets.has_value()),
        std::pair("strategy", model.strategy.has_value()),
        std::pair("gpus", model.ranks_of_model.has_value())})
    if (given) return fail(Code::usage, format("`--{}` goes with a model and `--train`", option));
  const auto is_folder = [&](const std::string& path) {
    const Result<host::FileStatus> status = files.status(path);
    return status && status->is_directory;
  };
  if (command.size() == 1 && (ends_with(command[0], ".safetensors") || is_folder(command[0])))
    return fail(Code::usage, format("`{}` is a model: say how it is trained, `--train full`, "
                                    "`--train lora:16` or `--train qlora`",
                                    command[0]));
  return {};
}

Result<FitModel> fit_model(const host::Host& files, const FitProgramRequest& program,
                           const FitModelRequest& model,
                           const std::optional<ComputeCapability>& traced_for) {
  for (const auto& [option, given] : {std::pair("batch-arg", program.batch_arg.has_value()),
                                      std::pair("function", program.function.has_value()),
                                      std::pair("events", !program.events.empty())})
    if (given)
      return fail(Code::usage, format("`--train` builds a program of its own: `--{}` does not go "
                                      "with it",
                                      option));
  FitModel out;
  out.command = program.command;
  if (out.command.empty())
    return fail(Code::usage,
                "`--train` needs a model: cufit fit model.safetensors --train lora:16");
  const std::string path = out.command.front();
  out.command.erase(out.command.begin());
  if (out.command.empty()) out.command = {"python3"};
  const std::string world = program.world.value_or("1");
  CUFIT_TRY(training, training_of(model, world != "1", program.seq, traced_for));
  if (Result<void> good = plan_of_model(program, model, training); !good) return good.error();
  if (training.strategy && !program.world)
    return fail(Code::usage, format("`--strategy {}`: over how many GPUs? `--gpus N`",
                                    training.strategy->asked));
  out.strategy = training.strategy;
  CUFIT_TRY(found, read_model_files(files, path));
  CUFIT_TRY(kind, kind_of(found, path));
  if (kind.architecture.empty())
    return fail(Code::unsupported,
                format("{}: names no class (`architectures`)", found.config_path));
  CUFIT_TRY(spec, fit::model_spec(kind, found.config_path, training,
                                  {found.weights, found.missing_bytes}));
  out.json = std::move(spec.json);
  out.title = format("{} --train {}", shell_word(path), model.train.value_or(""));
  if (out.strategy)
    out.title += format(" --gpus {} --strategy {}", shell_word(world), out.strategy->asked);
  return out;
}

}  // namespace cufit::commands
