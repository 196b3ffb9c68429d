// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_model.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "fit/answer/cards.h"
#include "fit/model_spec.h"

namespace cufit::commands {
namespace {

using formats::ModelConfig;
using formats::Tensor;

constexpr size_t k_most_config = 16u << 20, k_most_index = 100u << 20, k_most_files = 2000;
// Files beside a model's own that end in .safetensors.
constexpr std::string_view k_not_weights[] = {"adapter_model", "optimizer", "training_args"};

struct Found {
  std::vector<Tensor> tensors;
  std::optional<ModelConfig> config;
  std::string config_path;
  uint64_t missing_bytes = 0;
  bool weights = false;
};

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

class ModelReader {
 public:
  explicit ModelReader(const host::Host& files) : files_(files) {}

  Result<Found> read(const std::string& path) {
    CUFIT_TRY(status, files_.status(path));
    if (status.is_directory) {
      if (Result<void> done = folder(path); !done) return done.error();
    } else {
      if (Result<void> done = file(path); !done) return done.error();
      if (fit::kind_of_tensors(found_.tensors).architecture.empty())
        if (Result<void> done = config(folder_of(path) + "/config.json"); !done)
          return done.error();
    }
    return std::move(found_);
  }

 private:
  Result<void> file(const std::string& path) {
    CUFIT_TRY(source, files_.open(path));
    CUFIT_TRY(header, formats::read_safetensors(*source));
    found_.missing_bytes += header.missing_bytes;
    found_.weights = true;
    std::move(header.tensors.begin(), header.tensors.end(), std::back_inserter(found_.tensors));
    return {};
  }

  Result<void> config(const std::string& path) {
    if (!files_.exists(path)) return {};
    CUFIT_TRY(text, files_.read_file(path, k_most_config));
    CUFIT_TRY(config, formats::parse_model_config(text, path));
    CUFIT_TRY(real, files_.real_path(path));
    found_.config = std::move(config);
    found_.config_path = std::move(real);
    return {};
  }

  // A pipeline's trained component, or the folder itself.
  Result<void> folder(const std::string& path) {
    std::string below = path;
    if (const std::string index = path + "/model_index.json"; files_.exists(index)) {
      CUFIT_TRY(text, files_.read_file(index, k_most_config));
      CUFIT_TRY(parts, formats::parse_model_index(text, index));
      for (const auto& part : parts)
        if (part.first == "unet" || part.first == "transformer") below = path + "/" + part.first;
      if (below == path)
        return fail(Code::unsupported,
                    format("{}: no `unet` and no `transformer` that could be trained", index));
    }
    if (Result<void> done = config(below + "/config.json"); !done) return done;
    if (!found_.config)
      if (Result<void> done = config(below + "/adapter_config.json"); !done) return done;
    return weights(below);
  }

  Result<void> weights(const std::string& path) {
    CUFIT_TRY(names, files_.list(path));
    std::vector<std::string> files;
    for (const std::string& name : names) {
      if (!ends_with(name, ".safetensors.index.json")) continue;
      CUFIT_TRY(text, files_.read_file(path + "/" + name, k_most_index));
      CUFIT_TRY(listed, formats::parse_safetensors_index(text, path + "/" + name));
      files = std::move(listed);
      break;
    }
    if (files.empty()) {
      for (const std::string& name : names) {
        const bool other =
            std::any_of(std::begin(k_not_weights), std::end(k_not_weights),
                        [&](std::string_view start) { return starts_with(name, start); });
        if (ends_with(name, ".safetensors") && !other) files.push_back(name);
      }
      // Variants of the same weights stand side by side: "model.fp16.safetensors".
      for (const char* usual : {"model.safetensors", "diffusion_pytorch_model.safetensors"})
        if (std::find(files.begin(), files.end(), usual) != files.end()) files = {usual};
    }
    if (files.size() > k_most_files)
      return fail(Code::unsupported, format("{}: {} files of weights", path, files.size()));
    for (const std::string& name : files)
      if (Result<void> done = file(path + "/" + name); !done) return done;
    return {};
  }

  const host::Host& files_;
  Found found_;
};

Result<uint64_t> model_number(const char* option, const std::optional<std::string>& text) {
  if (!text) return uint64_t{0};
  const std::optional<uint64_t> value = parse_uint(*text);
  if (!value || *value == 0)
    return fail(Code::usage, format("`--{} {}`: a number from 1 on", option, *text));
  return *value;
}

Result<fit::Training> training_of(const FitModelRequest& model,
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
  if (traced_for) training.bfloat = *traced_for >= fit::k_first_with_bf16;
  return training;
}

Result<fit::ModelKind> kind_of(const Found& found, const std::string& path) {
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

}  // namespace

Result<void> without_model(const host::Host& files, const std::vector<std::string>& command,
                           const FitModelRequest& model) {
  for (const auto& [option, given] :
       {std::pair("res", model.res.has_value()), std::pair("dtype", model.dtype.has_value()),
        std::pair("optimizer", model.optimizer.has_value()),
        std::pair("checkpointing", model.checkpointing.has_value()),
        std::pair("lora-targets", model.lora_targets.has_value())})
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
  for (const auto& [option, given] :
       {std::pair("batch-arg", program.batch_arg.has_value()),
        std::pair("function", program.function.has_value()),
        std::pair("events", !program.events.empty()), std::pair("plan", program.plan)})
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
  CUFIT_TRY(training, training_of(model, program.seq, traced_for));
  CUFIT_TRY(found, ModelReader(files).read(path));
  CUFIT_TRY(kind, kind_of(found, path));
  if (kind.architecture.empty())
    return fail(Code::unsupported,
                format("{}: names no class (`architectures`)", found.config_path));
  CUFIT_TRY(spec, fit::model_spec(kind, found.config_path, training,
                                  {found.weights, found.missing_bytes}));
  out.json = std::move(spec.json);
  out.title = format("{} --train {}", shell_word(path), model.train.value_or(""));
  return out;
}

}  // namespace cufit::commands
