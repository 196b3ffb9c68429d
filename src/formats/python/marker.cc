// SPDX-License-Identifier: Apache-2.0
#include "formats/python/marker.h"

#include <cctype>

#include "base/format.h"
#include "formats/python/requirement.h"

namespace cufit::formats {
namespace {

enum class Truth { no, yes, unknown };

Truth both(Truth a, Truth b) {
  if (a == Truth::no || b == Truth::no) return Truth::no;
  return a == Truth::unknown || b == Truth::unknown ? Truth::unknown : Truth::yes;
}
Truth either(Truth a, Truth b) {
  if (a == Truth::yes || b == Truth::yes) return Truth::yes;
  return a == Truth::unknown || b == Truth::unknown ? Truth::unknown : Truth::no;
}

// or := and ("or" and)*;  and := atom ("and" atom)*;  atom := "(" or ")" | value operator value
class MarkerReader {
 public:
  MarkerReader(std::string_view text, const MarkerEnvironment& environment)
      : rest_(text), environment_(environment) {}

  Truth read() {
    Truth truth = read_or(0);
    skip_space();
    return bad_ || !rest_.empty() ? Truth::unknown : truth;
  }

 private:
  struct Value {
    std::string text;
    bool known = true;
    bool version = false;
    bool extra = false;  // names of extras are compared as normalised ones
  };

  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!starts_with(rest_, word)) return false;
    char next = rest_.size() > word.size() ? rest_[word.size()] : ' ';
    if (std::isalnum(static_cast<unsigned char>(next)) || next == '_') return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take(std::string_view text) {
    skip_space();
    if (!starts_with(rest_, text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  Truth read_or(int depth) {
    Truth truth = read_and(depth);
    while (!bad_ && take_word("or")) truth = either(truth, read_and(depth));
    return truth;
  }
  Truth read_and(int depth) {
    Truth truth = read_atom(depth);
    while (!bad_ && take_word("and")) truth = both(truth, read_atom(depth));
    return truth;
  }
  Truth read_atom(int depth) {
    if (depth > 32) return bad_ = true, Truth::unknown;
    if (take("(")) {
      Truth truth = read_or(depth + 1);
      if (!take(")")) bad_ = true;
      return truth;
    }
    Value left = read_value();
    std::string operation = read_operator();
    Value right = read_value();
    if (bad_ || !left.known || !right.known) return Truth::unknown;
    return compare(left, operation, right);
  }

  std::string read_operator() {
    for (const char* text : {"===", "==", "!=", "<=", ">=", "~=", "<", ">"})
      if (take(text)) return text;
    if (take_word("in")) return "in";
    if (take_word("not") && take_word("in")) return "not in";
    bad_ = true;
    return {};
  }

  Value read_value() {
    skip_space();
    if (rest_.empty()) return bad_ = true, Value{};
    if (rest_[0] == '"' || rest_[0] == '\'') {
      size_t end = rest_.find(rest_[0], 1);
      if (end == std::string_view::npos) return bad_ = true, Value{};
      Value value{std::string(rest_.substr(1, end - 1)), true, false};
      rest_.remove_prefix(end + 1);
      return value;
    }
    size_t end = 0;
    while (end < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[end])) ||
                                  rest_[end] == '_' || rest_[end] == '.'))
      ++end;
    if (end == 0) return bad_ = true, Value{};
    std::string_view name = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return value_of(name);
  }

  Value value_of(std::string_view name) const {
    if (name == "extra") return {normalised_name(environment_.extra), true, false, true};
    if (name == "sys_platform") return {"linux", true, false};
    if (name == "platform_system") return {"Linux", true, false};
    if (name == "os_name") return {"posix", true, false};
    if (name == "implementation_name") return {"cpython", true, false};
    if (name == "platform_python_implementation") return {"CPython", true, false};
    if (name == "platform_machine")
      return {environment_.platform_machine, !environment_.platform_machine.empty(), false};
    if (name == "python_full_version" && !environment_.python_full_version.empty())
      return {environment_.python_full_version, true, true};
    if (name == "python_version" || name == "python_full_version")
      return {environment_.python_version, !environment_.python_version.empty(), true};
    return {"", false, false};
  }

  static Truth truth(bool value) { return value ? Truth::yes : Truth::no; }

  static Truth compare(Value left, const std::string& operation, Value right) {
    if (left.extra || right.extra) {
      left.text = normalised_name(left.text);
      right.text = normalised_name(right.text);
    }
    if (operation == "in") return truth(contains(right.text, left.text));
    if (operation == "not in") return truth(!contains(right.text, left.text));
    if (left.version) return compare_versions(left.text, operation, right.text);
    if (right.version) return compare_versions(right.text, turned(operation), left.text);
    if (operation == "==" || operation == "===") return truth(left.text == right.text);
    if (operation == "!=") return truth(left.text != right.text);
    return Truth::unknown;
  }

  // "3.8" <= python_version
  static std::string turned(std::string operation) {
    if (operation[0] == '<')
      operation[0] = '>';
    else if (operation[0] == '>')
      operation[0] = '<';
    return operation;
  }

  static Truth compare_versions(const std::string& have, const std::string& operation,
                                const std::string& wanted) {
    const auto clauses = parse_clauses(operation + wanted);
    if (!clauses || !parse_python_version(have)) return Truth::unknown;
    return truth(satisfies(*clauses, have));
  }

  std::string_view rest_;
  const MarkerEnvironment& environment_;
  bool bad_ = false;
};

}  // namespace

std::optional<std::string> requirement_that_applies(std::string_view line,
                                                    const MarkerEnvironment& environment) {
  // A URL requirement ("name @ https://...") may hold a ";" of its own; the marker then follows "
  // ;".
  size_t marker = contains(line, "@ ") ? line.find(" ;") : line.find(';');
  std::string requirement(trim(line.substr(0, marker)));
  if (marker == std::string_view::npos) return requirement;
  std::string_view text = line.substr(line.find(';', marker) + 1);
  if (MarkerReader(text, environment).read() == Truth::no) return std::nullopt;
  return requirement;
}

}  // namespace cufit::formats
