// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/python_place.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "base/version.h"

namespace cufit::formats {
namespace {

constexpr size_t k_longest_path = 512;

// The start of the path that holds `at`: after a quote or bracket, or a blank where none opens it.
size_t path_begin(std::string_view line, size_t at) {
  size_t begin = at;
  while (begin > 0 && at - begin < k_longest_path &&
         !contains("\"'`()[]<>|,;=\t", line.substr(begin - 1, 1)))
    --begin;
  // Not in quotes: a blank ends it.
  // (A path that begins the line, as Python's warnings do, has its blanks as well. A command that
  // begins one goes on with options and other paths.)
  const std::string_view before = line.substr(0, at);
  if (begin == 0 && starts_with(line, "/") && !contains(before, ": ") && !contains(before, " /") &&
      !contains(before, " -"))
    return begin;
  if (begin == 0 || !contains("\"'`", line.substr(begin - 1, 1))) {
    const size_t blank = line.substr(begin, at - begin).rfind(' ');
    if (blank != std::string_view::npos) begin += blank + 1;
  }
  return begin;
}

bool is_drive_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_windows_path(std::string_view path) {
  return path.size() > 3 && is_drive_letter(path[0]) && path[1] == ':' && path[2] == '\\';
}

// A Python of the system or of an image is reached by its name.
bool is_shared(std::string_view prefix) {
  for (const std::string_view one : {"", "/usr", "/usr/local", "/opt/conda"})
    if (prefix == one) return true;
  return ends_with(prefix, "/.local");
}

// Where pip or uv built a package: it is gone when somebody reads the text.
bool is_of_a_build(std::string_view prefix) {
  return contains(prefix, "/pip-build-env-") || contains(prefix, "/builds-v0/.tmp");
}

// ".../lib/python3.11/site-packages/..."
std::optional<PythonPlace> linux_place(std::string_view line, size_t at) {
  const std::string_view before = line.substr(0, at);  // ends in "/lib/python3.11"
  const size_t slash = before.rfind('/');
  if (slash == std::string_view::npos || !starts_with(before.substr(slash + 1), "python3."))
    return std::nullopt;
  const std::string_view minor = before.substr(slash + 7);
  std::string_view above = before.substr(0, slash);
  if (!ends_with(above, "/lib") && !ends_with(above, "/lib64")) return std::nullopt;
  above = above.substr(0, above.rfind('/'));
  const std::string_view prefix =
      above.substr(std::min(path_begin(line, above.size()), above.size()));
  if (!starts_with(prefix, "/") || contains(prefix, "...") || is_shared(prefix) ||
      is_of_a_build(prefix) || !parse_version(minor))
    return std::nullopt;
  PythonPlace place;
  place.prefix = prefix;
  place.interpreter = place.prefix + "/bin/python";
  place.minor = minor;
  place.installer = contains(prefix, "/pypoetry/virtualenvs/") ? "poetry"
                    : contains(prefix, "/.pixi/envs/")         ? "pixi"
                                                               : "";
  return place;
}

// "C:\Users\me\venv\Lib\site-packages\...": a venv has its Python in Scripts, an installed Python,
// conda and a bundle beside Lib.
std::optional<PythonPlace> windows_place(std::string_view line, size_t at) {
  const std::string_view before = line.substr(0, at);  // ends in "\Lib"
  if (before.size() < 4 || lower(before.substr(before.size() - 4)) != "\\lib") return std::nullopt;
  const std::string_view above = before.substr(0, before.size() - 4);
  const std::string_view prefix = above.substr(path_begin(line, above.size()));
  if (!is_windows_path(prefix) || contains(prefix, "...")) return std::nullopt;
  const std::string name = lower(prefix.substr(prefix.rfind('\\') + 1)), all = lower(prefix);
  const bool beside =
      starts_with(name, "python") || contains(all, "\\envs\\") || contains(name, "conda");
  PythonPlace place;
  place.prefix = prefix;
  place.interpreter = place.prefix + (beside ? "\\python.exe" : "\\Scripts\\python.exe");
  return place;
}

// "python_embeded\python.exe" or "python_embedded\python.exe" in a command.
std::optional<PythonPlace> bundle_place(std::string_view line) {
  const std::string small = lower(line);
  for (const std::string_view name :
       {"python_embeded\\python.exe", "python_embedded\\python.exe"}) {
    const size_t at = small.rfind(name);
    if (at == std::string::npos) continue;
    PythonPlace place;
    place.interpreter = line.substr(path_begin(line, at), at + name.size() - path_begin(line, at));
    if (starts_with(place.interpreter, "python")) place.interpreter.insert(0, ".\\");
    return place;
  }
  return std::nullopt;
}

constexpr std::string_view k_no_module = ": No module named ";

// "/home/me/venv/bin/python3: No module named pip": how a Python answers to `-m`.
std::optional<PythonPlace> answering_place(std::string_view line) {
  constexpr std::string_view k_program = "/bin/python";
  const size_t end = line.find(k_no_module);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view called = line.substr(path_begin(line, end), end - path_begin(line, end));
  const size_t at = called.rfind(k_program);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view prefix = called.substr(0, at);
  const std::string_view version = called.substr(at + k_program.size());
  if (!starts_with(prefix, "/") || contains(prefix, "...") || is_shared(prefix) ||
      is_of_a_build(prefix) || version.find_first_not_of("0123456789.") != version.npos)
    return std::nullopt;
  PythonPlace place;
  place.prefix = prefix;
  place.interpreter = called;
  return place;
}

std::optional<PythonPlace> place_in(std::string_view line) {
  for (const auto& [mark, windows] :
       {std::pair{"/site-packages", false}, {"\\site-packages", true}}) {
    const size_t at = line.rfind(mark);
    if (at == std::string_view::npos) continue;
    if (auto place = windows ? windows_place(line, at) : linux_place(line, at)) return place;
  }
  if (auto place = answering_place(line)) return place;
  return bundle_place(line);
}

}  // namespace

std::optional<PythonPlace> last_python_place(std::span<const TextLine> lines) {
  for (size_t i = lines.size(); i-- > 0;) {
    if (!contains(lines[i].text, "site-packages") && !contains(lines[i].text, k_no_module) &&
        !contains(lower(lines[i].text), "python_embed"))
      continue;
    if (std::optional<PythonPlace> place = place_in(lines[i].text)) {
      place->line = lines[i].number;
      return place;
    }
  }
  return std::nullopt;
}

}  // namespace cufit::formats
