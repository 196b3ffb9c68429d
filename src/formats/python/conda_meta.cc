// SPDX-License-Identifier: Apache-2.0
#include "formats/python/conda_meta.h"

#include "base/format.h"
#include "base/json.h"
#include "formats/python/python_metadata.h"

namespace cufit::formats {
namespace {

// Events instead of a tree: the list of files may have 50 000 entries of which a few matter.
class CondaMetaReader final : public JsonEvents {
 public:
  CondaRecord record;
  std::string error;

  bool start_object() override { return ++depth_ < k_max_depth; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array() override { return ++depth_ < k_max_depth; }
  bool end_array() override { return depth_-- > 0; }
  bool key(std::string& name) override {
    if (depth_ == 1) key_ = name;
    return true;
  }
  bool text(std::string& value) override {
    if (depth_ == 1) {
      if (key_ == "name") record.name = value;
      if (key_ == "version") record.version = value;
      if (key_ == "build" || key_ == "build_string") record.build = value;
      if (key_ == "channel") record.channel = value;
    } else if (depth_ == 2 && key_ == "depends" && record.depends.size() < 4096) {
      record.depends.push_back(value);
    } else if (depth_ == 2 && key_ == "files") {
      if (is_shared_object_name(value)) record.shared_objects.push_back(value);
      if (is_package(value)) record.packages.push_back(value);
    }
    return true;
  }
  void damaged(size_t byte) override { error = format("not valid JSON at byte {}", byte); }

 private:
  static constexpr int k_max_depth = 64;
  static bool is_package(std::string_view path) {
    size_t at = path.find("site-packages/");
    if (at == std::string_view::npos) return false;
    std::string_view rest = path.substr(at + 14);
    size_t slash = rest.find('/');
    return slash != std::string_view::npos && rest.substr(slash) == "/__init__.py";
  }
  int depth_ = 0;
  std::string key_;
};

}  // namespace

std::optional<CondaName> parse_conda_file_name(std::string_view file_name) {
  if (!ends_with(file_name, ".json")) return std::nullopt;
  std::string_view stem = file_name.substr(0, file_name.size() - 5);
  // Neither version nor build may hold a "-".
  size_t build = stem.rfind('-');
  if (build == std::string_view::npos || build == 0) return std::nullopt;
  size_t version = stem.rfind('-', build - 1);
  if (version == std::string_view::npos || version == 0) return std::nullopt;
  CondaName out{std::string(stem.substr(0, version)),
                std::string(stem.substr(version + 1, build - version - 1)),
                std::string(stem.substr(build + 1))};
  if (out.version.empty() || out.build.empty()) return std::nullopt;
  return out;
}

Result<CondaRecord> parse_conda_record(std::string_view text) {
  CondaMetaReader reader;
  if (!read_json(text, reader)) {
    return fail(Code::malformed,
                reader.error.empty() ? "the JSON is nested too deeply" : reader.error);
  }
  if (reader.record.name.empty()) return fail(Code::malformed, "the record has no `name`");
  return std::move(reader.record);
}

}  // namespace cufit::formats
