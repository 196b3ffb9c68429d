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

// `--ip=0.0.0.0` of `ARGS="--ip=0.0.0.0 --allow-root"`.
std::string_view without_variable(std::string_view word) {
  const size_t equals = word.find("=--");
  return starts_with(word, "--") || equals == std::string_view::npos ? word
                                                                     : word.substr(equals + 1);
}

// Nothing but options: of a variable or a list.
bool is_options(const ShellCommand& command) {
  const size_t at = program_at(command.words);
  return at == command.words.size() || starts_with(command.words[at], "--");
}

// The option that word `i` is; no name = none.
JupyterSetting option_at(const ShellCommand& command, size_t i) {
  const std::string_view word = without_variable(command.words[i]);
  JupyterSetting one{"ServerApp", "", JupyterValue::other, "", command.lines[i]};
  if (!starts_with(word, "--")) return one;
  const size_t equals = word.find('=');
  const std::string option(word.substr(0, equals));
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
  if (equals != std::string_view::npos) {
    set_option_value(word.substr(equals + 1), one);
  } else if (is_switch) {
    one.kind = JupyterValue::boolean;
    one.value = "true";
  } else if (i + 1 < command.words.size() && !starts_with(command.words[i + 1], "-")) {
    set_option_value(command.words[i + 1], one);
  }
  return one;
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

bool starts_jupyter(const ShellCommand& command) {
  const std::vector<std::string>& words = command.words;
  if (starts_nothing(words)) return false;
  const auto is_server = [](std::string_view word) {
    for (const char* name : {"lab", "notebook", "server", "nbclassic", "labhub", "jupyterlab"})
      if (word == name) return true;
    return false;
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = program_name(words[i]);
    if ((starts_with(name, "jupyter-") && is_server(name.substr(8))) ||
        name == "jupyterhub-singleuser")
      return true;
    if (words[i] == "-m" && i + 1 < words.size() && is_server(words[i + 1])) return true;
    if (name == "jupyter" &&
        std::any_of(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end(), is_server))
      return true;
  }
  return false;
}

std::vector<JupyterSetting> parse_jupyter_options(const std::vector<ShellCommand>& commands) {
  std::vector<JupyterSetting> out;
  for (const ShellCommand& command : commands) {
    if (!starts_jupyter(command) && !is_options(command)) continue;
    for (size_t i = 0; i < command.words.size(); ++i) {
      JupyterSetting one = option_at(command, i);
      if (!is_jupyter_name(one.object) || !is_jupyter_name(one.name)) continue;
      if (out.size() >= k_most_jupyter_settings) return out;
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace cufit::formats
