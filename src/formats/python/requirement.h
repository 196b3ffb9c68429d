// SPDX-License-Identifier: Apache-2.0
// One requirement of a Python project (PEP 508) and the order of Python versions (PEP 440).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

// PEP 440: [epoch!]release[{a|b|rc}N][.postN][.devN][+local]
struct PythonVersion {
  uint64_t epoch = 0;
  std::vector<uint64_t> release;
  // Place of the suffixes in the order: dev < a < b < rc < none < post.
  std::optional<std::pair<char, uint64_t>> pre;  // 'a', 'b', 'r'
  std::optional<uint64_t> post, dev;
  std::string local;  // lower case, '-' and '_' read as '.'
  std::string text;   // as written
};
std::optional<PythonVersion> parse_python_version(std::string_view text);
std::strong_ordering compare(const PythonVersion& a, const PythonVersion& b);

// "==2.7.*", ">=2.4": operator and version as written.
struct VersionClause {
  std::string op;  // "==", "!=", ">=", "<=", ">", "<", "~=", "==="
  std::string version;
};

struct Requirement {
  std::string name;  // normalised (PEP 503): "flash-attn"
  std::vector<std::string> extras;
  std::vector<VersionClause> clauses;
  std::string url;     // "name @ url"
  std::string marker;  // after ';', not judged here
  std::string text;    // as written, without comment
};

// Error{malformed} says what is wrong and where in the line (1-based column).
Result<Requirement> parse_requirement(std::string_view line);
// A comma-separated list: ">=2.4,<3". Error as above.
Result<std::vector<VersionClause>> parse_clauses(std::string_view text);
// All clauses hold. Local parts count only where the clause has one ("==2.7.1" takes 2.7.1+cu126).
bool satisfies(const std::vector<VersionClause>& clauses, std::string_view version);
// Of a minor version ("3.11"): some patch release of it does.
bool some_patch_satisfies(const std::vector<VersionClause>& clauses, std::string_view minor);

// The requirements of a requirements.txt: comments, continuations and blank lines removed. Options
// (-r, --index-url, ...) are returned apart, as written; a line that is neither is an error with
// its number.
struct RequirementsFile {
  std::vector<Requirement> requirements;
  std::vector<std::string> options;
};
Result<RequirementsFile> parse_requirements_file(std::string_view text, const std::string& path);

// PEP 503: lower case, runs of "-_." to one "-".
std::string normalised_name(std::string_view name);

}  // namespace cufit::formats
