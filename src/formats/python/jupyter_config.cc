// SPDX-License-Identifier: Apache-2.0
#include "formats/python/jupyter_config.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_jupyter_settings = 2000;

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_jupyter_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 &&
         std::all_of(text.begin(), text.end(), is_name_letter);
}

// The literal of Python that `text` begins with; a text with prefix ("u''", "b''") is one too.
void set_python_literal(std::string_view text, JupyterSetting& out) {
  text = trim(text);
  size_t start = 0;
  while (start < text.size() && start < 2 && contains("rRuUbB", std::string(1, text[start])))
    ++start;
  if (start < text.size() && (text[start] == '"' || text[start] == '\'')) {
    const size_t end = text.find(text[start], start + 1);
    const std::string_view after =
        end == std::string_view::npos ? std::string_view("?") : trim(text.substr(end + 1));
    if (after.empty() || after[0] == '#') {
      out.kind = JupyterValue::text;
      out.value = std::string(text.substr(start + 1, end - start - 1));
      return;
    }
  }
  const std::string_view word = trim(text.substr(0, text.find('#')));
  out.value = std::string(word.substr(0, 200));
  if (word != "True" && word != "False") return;
  out.kind = JupyterValue::boolean;
  out.value = word == "True" ? "true" : "false";
}

// Of an option: everything is a text there.
void set_option_value(std::string_view text, JupyterSetting& out) {
  std::string value;
  for (const char c : text)
    if (c != '\'' && c != '"') value += c;
  out.kind = JupyterValue::text;
  std::string lower = value;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (lower == "true" || lower == "false") {
    out.kind = JupyterValue::boolean;
    value = lower;
  }
  if (contains(value, "$")) out.kind = JupyterValue::other;  // what a shell puts there
  out.value = value.substr(0, 200);
}

struct OptionAlias {
  const char* option;
  const char* name;
  bool is_switch;
};
// jupyter_server's own short forms.
constexpr OptionAlias k_option_aliases[] = {
    {"--ip", "ip", false}, {"--port", "port", false}, {"--allow-root", "allow_root", true}};

// Quotes join nothing here: what stands in `bash -c "jupyter lab --ip=..."` are words as well.
std::vector<std::pair<std::string_view, uint32_t>> option_words(std::string_view text) {
  std::vector<std::pair<std::string_view, uint32_t>> out;
  uint32_t line = 1;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool ends = i == text.size() || contains(" \t\r\n;&,[]", std::string(1, text[i]));
    if (!ends) continue;
    const std::string_view word = text.substr(begin, i - begin);
    if (!word.empty() && word != "\\" && word.size() <= 4096 && out.size() < 100000)
      out.emplace_back(word, line);
    if (i < text.size() && text[i] == '\n') ++line;
    begin = i + 1;
  }
  return out;
}

}  // namespace

std::vector<JupyterSetting> parse_jupyter_python(std::string_view text) {
  std::vector<JupyterSetting> out;
  uint32_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (!starts_with(line, "c.") && !starts_with(line, "get_config().")) continue;
    const size_t begin = line.find('.') + 1;
    const size_t equals = line.find('=', begin);
    if (equals == std::string_view::npos) continue;
    const std::string_view left = trim(line.substr(begin, equals - begin));
    const size_t dot = left.find('.');
    if (dot == std::string_view::npos) continue;
    JupyterSetting one;
    one.object = std::string(left.substr(0, dot));
    one.name = std::string(left.substr(dot + 1));
    one.line = number;
    if (!is_jupyter_name(one.object) || !is_jupyter_name(one.name)) continue;
    set_python_literal(line.substr(equals + 1), one);
    if (out.size() >= k_most_jupyter_settings) break;
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<JupyterSetting> parse_jupyter_json(std::string_view text) {
  std::vector<JupyterSetting> out;
  const std::optional<Json> root = Json::parse(text);
  if (!root || !root->is_object()) return out;
  for (auto object = root->begin(); object != root->end(); ++object) {
    if (!object->is_object()) continue;
    for (auto member = object->begin(); member != object->end(); ++member) {
      if (out.size() >= k_most_jupyter_settings) return out;
      JupyterSetting one{object.key(), member.key(), JupyterValue::other, "", 0};
      if (member->is_string()) {
        one.kind = JupyterValue::text;
        one.value = member->text();
      } else if (member->is_boolean()) {
        one.kind = JupyterValue::boolean;
        one.value = member->boolean() ? "true" : "false";
      } else {
        one.value = member->dump().substr(0, 200);
      }
      out.push_back(std::move(one));
    }
  }
  return out;
}

std::vector<JupyterSetting> parse_jupyter_options(std::string_view text) {
  std::vector<JupyterSetting> out;
  const auto words = option_words(text);
  for (size_t i = 0; i < words.size() && out.size() < k_most_jupyter_settings; ++i) {
    std::string_view word = words[i].first;
    while (!word.empty() && (word[0] == '"' || word[0] == '\'')) word.remove_prefix(1);
    if (!starts_with(word, "--")) continue;
    const size_t equals = word.find('=');
    std::string option(word.substr(0, equals));
    while (!option.empty() && (option.back() == '"' || option.back() == '\'')) option.pop_back();
    JupyterSetting one{"ServerApp", "", JupyterValue::other, "", words[i].second};
    bool is_switch = false;
    for (const OptionAlias& alias : k_option_aliases)
      if (option == alias.option) {
        one.name = alias.name;
        is_switch = alias.is_switch;
      }
    const size_t dot = option.find('.');
    if (one.name.empty() && dot != std::string::npos) {
      one.object = option.substr(2, dot - 2);
      one.name = option.substr(dot + 1);
    }
    if (!is_jupyter_name(one.object) || !is_jupyter_name(one.name)) continue;
    if (equals != std::string_view::npos) {
      set_option_value(word.substr(equals + 1), one);
    } else if (is_switch) {
      one.kind = JupyterValue::boolean;
      one.value = "true";
    } else if (i + 1 < words.size() && !starts_with(words[i + 1].first, "-")) {
      set_option_value(words[i + 1].first, one);
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace cufit::formats
