// SPDX-License-Identifier: Apache-2.0
#include "formats/model/model_config.h"

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr size_t k_model_config_longest = 256, k_model_config_most = 64;

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return printable(found->text(), k_model_config_longest);
}

std::string dtype_of(const Json& object) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (std::string text = text_at(object, key); !text.empty()) return text;
  return {};
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view text, const std::string& name) {
  const Json root = Json::parse(text).value_or(Json());
  if (!root.is_object()) return fail(Code::malformed, format("{}: not an object of JSON", name));
  ModelConfig out;
  out.class_name = text_at(root, "_class_name");
  out.model_type = text_at(root, "model_type");
  out.base_model = text_at(root, "base_model_name_or_path");
  out.adapter = root.contains("peft_type");
  out.own_code = root.contains("auto_map");
  out.dtype = dtype_of(root);
  for (const char* part : {"text_config", "llm_config"})
    if (const auto found = root.find(part); found != root.end() && found->is_object())
      if (out.dtype.empty()) out.dtype = dtype_of(*found);
  if (const auto list = root.find("architectures"); list != root.end() && list->is_array())
    for (const Json& one : *list)
      if (one.is_string() && out.architectures.size() < k_model_config_most)
        out.architectures.push_back(printable(one.text(), k_model_config_longest));
  if (const auto found = root.find("quantization_config");
      found != root.end() && found->is_object()) {
    out.quantisation = text_at(*found, "quant_method");
    if (out.quantisation.empty()) out.quantisation = "unknown";
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_model_index(
    std::string_view text, const std::string& name) {
  const Json root = Json::parse(text).value_or(Json());
  if (!root.is_object()) return fail(Code::malformed, format("{}: not an object of JSON", name));
  std::vector<std::pair<std::string, std::string>> out;
  for (auto each = root.begin(); each != root.end() && out.size() < k_model_config_most; ++each)
    if (each->is_array() && each->size() == 2 && (*each)[1].is_string())
      out.emplace_back(printable(each.key(), k_model_config_longest),
                       printable((*each)[1].text(), k_model_config_longest));
  return out;
}

}  // namespace cufit::formats
