// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/served_files.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/number.h"
#include "base/path.h"
#include "commands/fit/model_files.h"
#include "fit/model_kind.h"
#include "formats/model/gguf.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_most_parts = 2000;

// "model-00001-of-00003.gguf" with the number of another part; empty for a name of no part.
std::string part_name(const std::string& path, uint64_t number, uint64_t count) {
  const std::string end = format("-of-{:05}.gguf", count);
  if (!ends_with(path, end) || path.size() < end.size() + 6) return {};
  const size_t at = path.size() - end.size() - 5;
  const std::optional<uint64_t> own = parse_uint(std::string_view(path).substr(at, 5));
  if (path[at - 1] != '-' || !own || *own == 0 || *own > count) return {};
  return path.substr(0, at) + format("{:05}", number) + end;
}

Result<ServedFiles> read_gguf_files(const host::Host& files, const std::string& path) {
  ServedFiles out;
  out.gguf = true;
  out.config_name = path;
  CUFIT_TRY(source, files.open(path));
  CUFIT_TRY(first, formats::read_gguf(*source));
  const uint64_t count = first.number("split.count", 1);
  if (count > k_most_parts)
    return fail(Code::malformed, format("{}: a model of {} parts", path, count));
  const std::string start = count > 1 ? part_name(path, 1, count) : path;
  if (start.empty())
    return fail(Code::unsupported,
                format("{}: one of {} parts, and its name does not say which", path, count));
  // The metadata stands in the first part.
  std::vector<formats::Tensor> tensors = std::move(first.tensors);
  out.missing_bytes = first.missing_bytes;
  for (uint64_t i = 1; i <= count && count > 1; ++i) {
    const std::string name = part_name(path, i, count);
    if (name == path) continue;
    CUFIT_TRY(bytes, files.open(name));
    CUFIT_TRY(part, formats::read_gguf(*bytes));
    out.missing_bytes += part.missing_bytes;
    std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(tensors));
    if (i == 1) first.metadata = std::move(part.metadata);
  }
  first.tensors = std::move(tensors);
  out.config_name = out.served = start;
  CUFIT_TRY(config, formats::decoder_config_of(first, start));
  out.config = std::move(config);
  out.tensors = std::move(first.tensors);
  return out;
}

// Weights that an engine of safetensors would load.
bool is_other_weights(const std::string& name) {
  if (ends_with(name, ".safetensors")) return true;
  return ends_with(name, ".bin") && !starts_with(name, "training_args") &&
         !starts_with(name, "optimizer") && !starts_with(name, "scheduler");
}

// The only GGUF model of a folder without other weights; empty: none.
Result<std::string> gguf_of_folder(const host::Host& files, const std::string& path) {
  CUFIT_TRY(names, files.list(path));
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (is_other_weights(name)) return std::string();
    const bool picture_part = starts_with(name, "mmproj");
    const bool later_part = contains(name, "-of-") && !contains(name, "-00001-of-");
    if (ends_with(name, ".gguf") && !picture_part && !later_part) found.push_back(name);
  }
  if (found.empty()) return std::string();
  if (found.size() > 1)
    return fail(Code::usage, format("{}: {} GGUF models; name one of the files, such as `{}`", path,
                                    found.size(), found.front()));
  return path_in(path, found.front());
}

}  // namespace

Result<ServedFiles> read_served_files(const host::Host& files, const std::string& path) {
  CUFIT_TRY(status, files.status(path));
  std::string gguf = ends_with(path, ".gguf") ? path : std::string();
  if (status.is_directory) {
    CUFIT_TRY(inside, gguf_of_folder(files, path));
    gguf = std::move(inside);
  }
  if (!gguf.empty()) return read_gguf_files(files, gguf);
  const std::string folder = status.is_directory ? path : parent_folder(path);
  CUFIT_TRY(found, read_model_files(files, folder.empty() ? "." : folder));
  if (!status.is_directory &&
      std::find(found.names.begin(), found.names.end(), file_name(path)) == found.names.end())
    return fail(Code::unsupported,
                format("{}: engines load its folder, and it is none of the weights there", path));
  if (fit::not_a_model(found.tensors) == "lora" || (found.config && found.config->adapter))
    return fail(Code::unsupported,
                format("{}: a LoRA, not a model; name the model that it belongs to", path));
  if (!found.config)
    return fail(Code::unsupported,
                format("{}: no config.json is there that says what the model is", path));
  ServedFiles out;
  out.config_name = found.config_path;
  out.served = folder.empty() ? "." : folder;
  CUFIT_TRY(config, formats::parse_decoder_config(found.config_text, found.config_path));
  out.config = std::move(config);
  out.tensors = std::move(found.tensors);
  out.missing_bytes = found.missing_bytes;
  return out;
}

}  // namespace cufit::commands
