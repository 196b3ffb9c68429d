// SPDX-License-Identifier: Apache-2.0
// The readers of small JSON configuration files.
#include "formats/system/daemon_json.h"
#include "formats/system/toolkit_version.h"

#include "base/format.h"
#include "base/json.h"
#include "base/version.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

// Text at a key of an object; empty for anything else.
std::string json_text_at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return found->text();
}

// Text or whole number: the note's writers use both for branches.
std::string scalar_text(const Json& value) {
  if (value.is_string()) return printable(value.text(), 128);
  return value.is_number_integer() ? value.dump() : std::string();
}

std::string json_text_of(const Json& object, const char* key) {
  auto found = object.find(key);
  return found == object.end() ? std::string() : scalar_text(*found);
}

// A list of scalars, or one scalar alone.
std::vector<std::string> texts_of(const Json& object, const char* key) {
  constexpr size_t k_max_items = 1024;
  std::vector<std::string> out;
  auto found = object.find(key);
  if (found == object.end()) return out;
  if (!found->is_array()) {
    std::string text = scalar_text(*found);
    if (!text.empty()) out.push_back(std::move(text));
    return out;
  }
  for (const Json& item : *found) {
    std::string text = scalar_text(item);
    if (!text.empty() && out.size() < k_max_items) out.push_back(std::move(text));
  }
  return out;
}

std::string only_version(std::string_view text) {
  std::optional<Version> version = parse_version(text);
  return version ? version->text() : std::string();
}

}  // namespace

std::string parse_toolkit_json(std::string_view text) {
  Json root = Json::parse(text).value_or(Json());
  if (!root.is_object()) return {};
  for (const char* part : {"cuda", "cuda_nvcc", "cuda_cudart"}) {
    auto found = root.find(part);
    if (found == root.end()) continue;
    std::string version = only_version(json_text_at(*found, "version"));
    if (!version.empty()) return version;
  }
  return {};
}

std::string parse_toolkit_nvcc(std::string_view text) {
  Json root = Json::parse(text).value_or(Json());
  if (!root.is_object()) return {};
  auto found = root.find("cuda_nvcc");
  return found == root.end() ? std::string() : only_version(json_text_at(*found, "version"));
}

std::string parse_toolkit_text(std::string_view text) {
  for (std::string_view line : split_lines(text)) {
    size_t at = line.find("CUDA Version ");
    if (at != std::string_view::npos) return only_version(trim(line.substr(at + 13)));
  }
  return {};
}

std::optional<CompatNote> parse_compat_note(std::string_view text) {
  Json root = Json::parse(text).value_or(Json());
  if (!root.is_object()) return std::nullopt;
  CompatNote out;
  out.cuda = json_text_of(root, "CUDA Version");
  out.drivers = texts_of(root, "Driver");
  out.devices = texts_of(root, "Device");
  return out;
}

Result<DaemonConfig> parse_daemon_json(std::string_view text, const std::string& name) {
  DaemonConfig out;
  if (trim(text).empty()) return out;  // Docker takes an empty file as no settings
  Json root = Json::parse(text).value_or(Json());
  if (!root.is_object()) {
    return fail(Code::malformed,
                format("`{}`: no JSON object (byte {})", name, damaged_json_byte(text)));
  }
  out.default_runtime = json_text_at(root, "default-runtime");
  out.data_root = json_text_at(root, "data-root");
  auto runtimes = root.find("runtimes");
  if (runtimes != root.end() && runtimes->is_object()) {
    for (auto each = runtimes->begin(); each != runtimes->end(); ++each) {
      if (each.key() == "nvidia" ||
          contains(json_text_at(each.value(), "path"), "nvidia-container-runtime")) {
        out.has_nvidia_runtime = true;
      }
    }
  }
  auto features = root.find("features");
  if (features != root.end() && features->is_object()) {
    auto cdi = features->find("cdi");
    out.cdi_enabled = cdi != features->end() && cdi->is_boolean() && cdi->boolean();
  }
  return out;
}

}  // namespace cufit::formats
