// SPDX-License-Identifier: Apache-2.0
#include "formats/python/env_record.h"

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr const char* k_schema = "cufit.env/1";

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return printable(found->text());
}

uint64_t number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number_unsigned() ? 0 : found->natural();
}

}  // namespace

Result<EnvRecord> parse_env_record(std::string_view text, const std::string& file) {
  const Json root = Json::parse(text).value_or(Json());
  if (!root.is_object())
    return fail(Code::malformed,
                format("`{}` is damaged: no JSON object (byte {})", file, damaged_json_byte(text)));
  if (const std::string schema = text_at(root, "schema"); schema != k_schema)
    return fail(Code::unsupported, format("`{}`: schema `{}`, not {}", file, schema, k_schema));
  EnvRecord out;
  out.name = text_at(root, "class");
  out.pylock = text_at(root, "pylock");
  out.pylock_sha256 = text_at(root, "pylock_sha256");
  out.created = text_at(root, "created");
  out.installer = text_at(root, "installer");
  out.python = text_at(root, "python");
  out.torch = text_at(root, "torch");
  out.packages = number_at(root, "packages");
  out.bytes = number_at(root, "bytes");
  out.shared_bytes = number_at(root, "shared_bytes");
  if (out.name.empty() || out.pylock_sha256.empty())
    return fail(Code::malformed, format("`{}` is damaged: no `class` or no `pylock_sha256`", file));
  return out;
}

std::string env_record_text(const EnvRecord& record) {
  const Json out = {{"schema", k_schema},
                    {"class", record.name},
                    {"pylock", record.pylock},
                    {"pylock_sha256", record.pylock_sha256},
                    {"created", record.created},
                    {"installer", record.installer},
                    {"python", record.python},
                    {"torch", record.torch},
                    {"packages", record.packages},
                    {"bytes", record.bytes},
                    {"shared_bytes", record.shared_bytes}};
  return out.dump(2) + "\n";
}

}  // namespace cufit::formats
