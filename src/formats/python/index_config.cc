// SPDX-License-Identifier: Apache-2.0
#include "formats/python/index_config.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "formats/toml_text.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_indexes = 64, k_longest_url = 4096;

bool is_url(std::string_view text) {
  return text.size() <= k_longest_url &&
         (starts_with(text, "http://") || starts_with(text, "https://"));
}

std::string text_at(const TomlValue& table, const char* key) {
  const TomlValue* value = table.find(key);
  return value != nullptr && value->is_text() ? value->text : std::string();
}

bool flag_at(const TomlValue& table, const char* key) {
  const TomlValue* value = table.find(key);
  return value != nullptr && value->kind == TomlValue::Kind::boolean && value->integer != 0;
}

void add(std::vector<IndexUrl>& out, IndexUrl index) {
  if (is_url(index.url) && out.size() < k_most_indexes) out.push_back(std::move(index));
}

void read_settings(const TomlValue& table, const std::string& file, std::vector<IndexUrl>& out) {
  if (const TomlValue* list = table.find("index"))
    for (const TomlValue& one : list->items)
      add(out, {text_at(one, "url"), printable(text_at(one, "name")), file, flag_at(one, "default"),
                flag_at(one, "explicit")});
  if (const TomlValue* list = table.find("extra-index-url"))
    for (const TomlValue& one : list->items) add(out, {one.text, "", file, false, false});
  add(out, {text_at(table, "index-url"), "", file, true, false});
}

}  // namespace

Result<std::vector<IndexUrl>> parse_uv_indexes(std::string_view text, const std::string& file,
                                               bool is_pyproject) {
  CUFIT_TRY(document, parse_toml(text, file));
  std::vector<IndexUrl> out;
  const TomlValue* table = &document.root;
  if (is_pyproject)
    for (const char* key : {"tool", "uv"})
      if (table != nullptr) table = table->find(key);
  if (table == nullptr) return out;
  read_settings(*table, file, out);
  // [pip] of uv's settings is for `uv pip` alone, which is what cufit runs.
  if (const TomlValue* pip = table->find("pip")) read_settings(*pip, file, out);
  return out;
}

std::vector<IndexUrl> parse_pip_indexes(std::string_view text, const std::string& file) {
  std::map<std::string, std::map<std::string, std::string>> sections;
  std::string section, key;
  for (const std::string_view line : split_lines(text)) {
    const std::string_view word = trim(line);
    if (word.empty() || word[0] == '#' || word[0] == ';') continue;
    if (word[0] == '[') {
      section = lower(word.substr(
          1, word.find(']') == std::string_view::npos ? word.size() - 1 : word.find(']') - 1));
      key.clear();
      continue;
    }
    // An indented line goes on with the value before.
    if (std::isspace(static_cast<unsigned char>(line[0])) && !key.empty()) {
      sections[section][key] += " " + std::string(word);
      continue;
    }
    const size_t at = word.find_first_of("=:");
    if (at == std::string_view::npos) continue;
    key = lower(trim(word.substr(0, at)));
    std::replace(key.begin(), key.end(), '_', '-');
    sections[section][key] = std::string(trim(word.substr(at + 1)));
  }
  const auto value = [&](const char* name) {
    for (const char* where : {"install", "global"})
      if (const auto found = sections[where].find(name); found != sections[where].end())
        return found->second;
    return std::string();
  };
  std::vector<IndexUrl> out;
  const std::string extra = value("extra-index-url");
  for (const std::string_view url : split(extra, ' '))
    add(out, {std::string(url), "", file, false, false});
  add(out, {value("index-url"), "", file, true, false});
  return out;
}

namespace {

// "?token=x&page=2" -> "?***": what a mirror is asked with is often what opens it.
std::string without_query(std::string_view text) {
  std::string out;
  while (true) {
    const size_t scheme = text.find("://");
    if (scheme == std::string_view::npos) return out + std::string(text);
    const size_t end = std::min(text.find_first_of(" \t\r\n\"'`<>#", scheme), text.size());
    const size_t query = std::min(text.find('?', scheme), end);
    out += text.substr(0, query);
    if (query + 1 < end) out += "?***";
    text.remove_prefix(query + 1 < end ? end : query);
    if (query + 1 >= end && !text.empty() && text[0] == '?') {
      out += '?';
      text.remove_prefix(1);
    }
  }
}

}  // namespace

std::string without_credentials(std::string_view whole) {
  const std::string without = without_query(whole);
  std::string_view text = without;
  std::string out;
  while (true) {
    const size_t scheme = text.find("://");
    if (scheme == std::string_view::npos) return out + std::string(text);
    out += text.substr(0, scheme + 3);
    text.remove_prefix(scheme + 3);
    // A password may hold an "@" itself: the last one before the path ends the credentials.
    const std::string_view authority = text.substr(0, text.find_first_of("/?# \t\r\n\"'`<>"));
    const size_t at = authority.rfind('@');
    if (at == std::string_view::npos) continue;
    out += "***";
    text.remove_prefix(at);
  }
}

IndexUrl parse_index_word(std::string_view word, const std::string& from) {
  IndexUrl out;
  out.from = from;
  const size_t equals = word.find('=');
  if (equals != std::string_view::npos && word.find("://") != std::string_view::npos &&
      equals < word.find("://")) {
    out.name = printable(word.substr(0, equals));
    word.remove_prefix(equals + 1);
  }
  out.url = std::string(word);
  return out;
}

}  // namespace cufit::formats
