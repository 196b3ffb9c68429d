// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/model_files.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "base/path.h"
#include "fit/model_kind.h"

namespace cufit::commands {
namespace {

using formats::ModelConfig;
using formats::Tensor;

constexpr size_t k_most_config = 16u << 20, k_most_index = 100u << 20, k_most_files = 2000;
// Files beside a model's own that end in .safetensors.
constexpr std::string_view k_not_weights[] = {"adapter_model", "optimizer", "training_args"};

// Of how many parts a file is one: 3 of "model-00001-of-00003.safetensors"; 0: none.
uint64_t parts_of(std::string_view name) {
  const size_t of = name.rfind("-of-"), end = name.rfind('.');
  if (of == std::string_view::npos || end == std::string_view::npos || end < of + 4) return 0;
  return parse_uint(name.substr(of + 4, end - of - 4)).value_or(0);
}

class ModelReader {
 public:
  explicit ModelReader(const host::Host& files) : files_(files) {}

  Result<ModelFiles> read(const std::string& path) {
    CUFIT_TRY(status, files_.status(path));
    if (status.is_directory) {
      if (Result<void> done = folder(path); !done) return done.error();
    } else {
      if (Result<void> done = file(path); !done) return done.error();
      if (fit::kind_of_tensors(found_.tensors).architecture.empty())
        if (Result<void> done = config(path_in(parent_folder(path), "config.json")); !done)
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
    found_.names.emplace_back(file_name(path));
    return {};
  }

  Result<void> config(const std::string& path) {
    if (!files_.exists(path)) return {};
    CUFIT_TRY(text, files_.read_file(path, k_most_config));
    CUFIT_TRY(config, formats::parse_model_config(text, path));
    CUFIT_TRY(real, files_.real_path(path));
    found_.config = std::move(config);
    found_.config_path = std::move(real);
    found_.config_text = std::move(text);
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
      if (Result<void> done = all_parts(path, files); !done) return done;
    }
    if (files.size() > k_most_files)
      return fail(Code::unsupported, format("{}: {} files of weights", path, files.size()));
    for (const std::string& name : files)
      if (Result<void> done = file(path + "/" + name); !done) return done;
    return {};
  }

  // Without an index their names say how many there should be.
  static Result<void> all_parts(const std::string& path, const std::vector<std::string>& files) {
    std::map<uint64_t, uint64_t> there;
    for (const std::string& name : files) ++there[parts_of(name)];
    for (const auto& [parts, count] : there)
      if (count < parts)
        return fail(Code::unsupported,
                    format("{}: there are {} of the {} parts of the model", path, count, parts));
    return {};
  }

  const host::Host& files_;
  ModelFiles found_;
};

}  // namespace

Result<ModelFiles> read_model_files(const host::Host& files, const std::string& path) {
  return ModelReader(files).read(path);
}

}  // namespace cufit::commands
