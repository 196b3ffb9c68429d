// SPDX-License-Identifier: Apache-2.0
#include "formats/python/requirement.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"

namespace cufit::formats {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }
bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// A line with a place in it, for errors that name the column.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  void skip_spaces() {
    while (!done() && is_space(peek())) ++at_;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  template <class Wanted>
  std::string_view take_while(Wanted wanted) {
    const size_t from = at_;
    while (!done() && wanted(peek())) ++at_;
    return text_.substr(from, at_ - from);
  }
  std::string_view rest() {
    std::string_view all = trimmed(text_.substr(at_));
    at_ = text_.size();
    return all;
  }
  Error wrong(const std::string& what) const {
    return fail(Code::malformed, format("`{}`, column {}: {}", std::string(text_), at_ + 1, what));
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

Result<VersionClause> take_clause(Line& line) {
  VersionClause clause;
  for (const char* op : {"===", "==", "!=", ">=", "<=", "~=", ">", "<"}) {
    if (line.take(std::string_view(op))) {
      clause.op = op;
      break;
    }
  }
  if (clause.op.empty()) return line.wrong("an operator (`==`, `>=`, `<`, `~=`, ...) is expected");
  line.skip_spaces();
  clause.version = std::string(
      line.take_while([](char c) { return is_name(c) || c == '*' || c == '+' || c == '!'; }));
  std::string_view version = clause.version;
  if (version.size() > 2 && version.substr(version.size() - 2) == ".*") {
    if (clause.op != "==" && clause.op != "!=")
      return line.wrong(format("`.*` goes with `==` and `!=` only, not with `{}`", clause.op));
    version.remove_suffix(2);
  }
  const std::optional<PythonVersion> parsed = parse_python_version(version);
  if (version.empty()) return line.wrong("a version is expected");
  if (clause.op != "===" && !parsed)
    return line.wrong(format("`{}` is not a version", clause.version));
  if (clause.op == "~=" && parsed->release.size() < 2)
    return line.wrong("`~=` needs a version of two parts or more");
  line.skip_spaces();
  return clause;
}

Result<std::vector<VersionClause>> take_clauses(Line& line, char end) {
  std::vector<VersionClause> clauses;
  line.skip_spaces();
  while (!line.done() && line.peek() != end && line.peek() != ';') {
    CUFIT_TRY(clause, take_clause(line));
    clauses.push_back(std::move(clause));
    if (!line.take(',')) break;
    line.skip_spaces();
  }
  return clauses;
}

// "torch==2.7" read as a prefix: every part of `prefix` equals.
bool has_prefix(const PythonVersion& version, const PythonVersion& prefix) {
  if (version.epoch != prefix.epoch) return false;
  for (size_t i = 0; i < prefix.release.size(); ++i) {
    const uint64_t part = i < version.release.size() ? version.release[i] : 0;
    if (part != prefix.release[i]) return false;
  }
  return true;
}

PythonVersion without_local(PythonVersion version) {
  version.local.clear();
  return version;
}

bool same_release(const PythonVersion& a, const PythonVersion& b) {
  PythonVersion x = a, y = b;
  for (PythonVersion* one : {&x, &y}) {
    one->pre.reset();
    one->post.reset();
    one->dev.reset();
    one->local.clear();
  }
  return compare(x, y) == std::strong_ordering::equal;
}

bool holds(const VersionClause& clause, const PythonVersion& have, std::string_view text) {
  if (clause.op == "===") return clause.version == text;
  std::string_view wanted = clause.version;
  const bool prefix = wanted.size() > 2 && wanted.substr(wanted.size() - 2) == ".*";
  if (prefix) wanted.remove_suffix(2);
  const std::optional<PythonVersion> want = parse_python_version(wanted);
  if (!want) return false;
  if (prefix) return has_prefix(have, *want) == (clause.op == "==");
  // A local part counts only where the clause has one (PEP 440, "version matching").
  const PythonVersion mine = want->local.empty() ? without_local(have) : have;
  const auto order = compare(mine, *want);
  if (clause.op == "==") return order == 0;
  if (clause.op == "!=") return order != 0;
  if (clause.op == ">=") return order >= 0;
  if (clause.op == "<=") return order <= 0;
  // 2.7.0.post1 is not > 2.7.0, and 2.7.0rc1 is not < 2.7.0: of one release they count as equal.
  if (clause.op == ">")
    return order > 0 && (want->post || !have.post || !same_release(have, *want));
  if (clause.op == "<")
    return order < 0 &&
           (want->pre || want->dev || !(have.pre || have.dev) || !same_release(have, *want));
  if (clause.op == "~=") {
    PythonVersion series = *want;
    series.release.pop_back();
    return order >= 0 && has_prefix(have, series);
  }
  return false;
}

}  // namespace

std::string normalised_name(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c == '-' || c == '_' || c == '.') {
      if (!out.empty() && out.back() != '-') out += '-';
    } else {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

Result<std::vector<VersionClause>> parse_clauses(std::string_view text) {
  Line line(text);
  CUFIT_TRY(clauses, take_clauses(line, '\0'));
  if (!line.done()) return line.wrong("a comma or the end is expected");
  return clauses;
}

Result<Requirement> parse_requirement(std::string_view text) {
  // A comment begins with '#' at the start or after a space (a URL may hold '#').
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#' && (i == 0 || is_space(text[i - 1]))) {
      text = text.substr(0, i);
      break;
    }
  }
  text = trimmed(text);
  Line line(text);
  Requirement requirement;
  requirement.text = std::string(text);
  const std::string_view name = line.take_while(is_name);
  if (name.empty()) return line.wrong("a package name is expected");
  if (!std::isalnum(static_cast<unsigned char>(name.front())) ||
      !std::isalnum(static_cast<unsigned char>(name.back())))
    return line.wrong(format("`{}` is not a package name", std::string(name)));
  requirement.name = normalised_name(name);
  line.skip_spaces();
  if (line.take('[')) {
    do {
      line.skip_spaces();
      const std::string_view extra = line.take_while(is_name);
      if (!extra.empty()) requirement.extras.push_back(normalised_name(extra));
      line.skip_spaces();
    } while (line.take(','));
    if (!line.take(']')) return line.wrong("`]` is expected");
    line.skip_spaces();
  }
  if (line.take('@')) {
    line.skip_spaces();
    requirement.url = std::string(line.take_while([](char c) { return !is_space(c); }));
    if (requirement.url.empty()) return line.wrong("a URL is expected after `@`");
    line.skip_spaces();
  } else {
    const bool bracket = line.take('(');
    CUFIT_TRY(clauses, take_clauses(line, ')'));
    requirement.clauses = std::move(clauses);
    if (bracket && !line.take(')')) return line.wrong("`)` is expected");
    line.skip_spaces();
  }
  if (line.take(';')) requirement.marker = std::string(line.rest());
  if (!line.done()) return line.wrong("an operator, a comma or the end is expected");
  return requirement;
}

bool satisfies(const std::vector<VersionClause>& clauses, std::string_view version) {
  if (clauses.empty()) return true;
  const std::optional<PythonVersion> have = parse_python_version(version);
  return std::all_of(clauses.begin(), clauses.end(), [&](const VersionClause& clause) {
    if (!have) return clause.op == "===" && clause.version == version;
    return holds(clause, *have, version);
  });
}

bool some_patch_satisfies(const std::vector<VersionClause>& clauses, std::string_view minor) {
  // Between the numbers that the clauses name nothing changes: each, the next, and both ends.
  std::vector<uint64_t> patches = {0, 1, 99};
  for (const VersionClause& clause : clauses) {
    const std::optional<PythonVersion> named = parse_python_version(clause.version);
    if (!named || named->release.size() < 3 || named->release[2] > 1000) continue;
    patches.push_back(named->release[2]);
    patches.push_back(named->release[2] + 1);
  }
  return std::any_of(patches.begin(), patches.end(), [&](uint64_t patch) {
    return satisfies(clauses, std::string(minor) + "." + std::to_string(patch));
  });
}

Result<RequirementsFile> parse_requirements_file(std::string_view text, const std::string& path) {
  RequirementsFile file;
  size_t number = 0, at = 0;
  if (text.substr(0, 3) == "\xEF\xBB\xBF") at = 3;
  while (at < text.size()) {
    std::string joined;
    const size_t first = number + 1;
    bool more = true;
    while (more && at < text.size()) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      at = end + 1;
      ++number;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      more = !line.empty() && line.back() == '\\';
      if (more) line.remove_suffix(1);
      joined += line;
    }
    std::string_view line = trimmed(joined);
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '-') {
      file.options.emplace_back(line);
      continue;
    }
    // Hashes follow the requirement as options; what is locked anew gets new ones.
    const size_t hash = line.find(" --hash");
    if (hash != std::string_view::npos) line = trimmed(line.substr(0, hash));
    Result<Requirement> requirement = parse_requirement(line);
    if (!requirement) return std::move(requirement.error()).in(format("{}, line {}", path, first));
    file.requirements.push_back(std::move(*requirement));
  }
  return file;
}

}  // namespace cufit::formats
