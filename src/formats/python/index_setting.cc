// SPDX-License-Identifier: Apache-2.0
#include "formats/python/index_setting.h"

#include "base/format.h"
#include "formats/toml_text.h"

namespace cufit::formats {
namespace {

constexpr size_t k_longest_mirror = 4096;

bool is_address(std::string_view text) {
  return text.size() <= k_longest_mirror && text.find(' ') == std::string_view::npos &&
         (starts_with(text, "http://") || starts_with(text, "https://"));
}

}  // namespace

std::string IndexSetting::pytorch_index_url(std::string_view tag) const {
  return (pytorch.empty() ? "https://download.pytorch.org/whl" : pytorch) + "/" + std::string(tag);
}

std::string pytorch_mirror(std::string_view url) {
  if (!is_address(url) || contains(url, "download.pytorch.org") || contains(url, "?")) return {};
  while (ends_with(url, "/")) url.remove_suffix(1);
  const size_t slash = url.rfind('/');
  if (slash == std::string_view::npos || slash <= url.find("://") + 2) return {};
  const std::string_view last = url.substr(slash + 1);
  if (last == "whl") return std::string(url);
  const bool is_tag = starts_with(last, "cu") && last.size() >= 5 &&
                      last.find_first_not_of("0123456789", 2) == std::string_view::npos;
  return is_tag ? std::string(url.substr(0, slash)) : std::string();
}

Result<IndexSetting> parse_index_setting(std::string_view text, const std::string& file) {
  CUFIT_TRY(document, parse_toml(text, file));
  IndexSetting out;
  const TomlValue* table = document.find("index");
  if (table == nullptr) return out;
  if (!table->is_table()) return document.wrong(*table, "`index` must be a table");
  out.from = file;
  for (const TomlMember& member : table->members) {
    std::string* to = member.name == "pytorch"   ? &out.pytorch
                      : member.name == "default" ? &out.default_index
                                                 : nullptr;
    if (to == nullptr)
      return document.wrong(member.value,
                            format("`index.{}` is not a setting that cufit knows", member.name));
    if (!member.value.is_text() || !is_address(member.value.text))
      return document.wrong(member.value,
                            format("`index.{}` must be an http or https address", member.name));
    *to = member.value.text;
    if (to == &out.default_index) out.default_from = file;
    while (to->back() == '/') to->pop_back();
  }
  return out;
}

}  // namespace cufit::formats
