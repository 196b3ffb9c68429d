// SPDX-License-Identifier: Apache-2.0
#include "formats/python/python_metadata.h"

#include <cstring>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_requires = 4096;
constexpr size_t k_max_bad_lines = 8;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] | 0x20) != (b[i] | 0x20)) return false;
  return true;
}

// Calls visit(key, value) for each header line; continuation lines are joined with a space.
template <class Visit>
void for_each_header(std::string_view text, Visit visit) {
  if (starts_with(text, "\xef\xbb\xbf")) text.remove_prefix(3);
  std::string_view key;
  std::string value;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) break;
    if (line[0] == ' ' || line[0] == '\t') {
      if (!key.empty()) value += " " + std::string(trim(line));
      continue;
    }
    if (!key.empty()) visit(key, value);
    key = {};
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    key = line.substr(0, colon);
    value = std::string(trim(line.substr(colon + 1)));
  }
  if (!key.empty()) visit(key, value);
}

// The path of one RECORD line; nullopt when its quote is not closed.
std::optional<std::string> record_path(std::string_view line) {
  if (line[0] != '"') return std::string(line.substr(0, line.find(',')));
  std::string out;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] != '"') {
      out += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      out += line[i++];
    } else {
      return out;
    }
  }
  return std::nullopt;
}

bool is_top_level_init(std::string_view path) {
  size_t slash = path.find('/');
  return slash != std::string_view::npos && slash > 0 && path.substr(slash) == "/__init__.py" &&
         path[0] != '.';
}

}  // namespace

std::string normalize_name(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool separator = c == '-' || c == '_' || c == '.';
    if (separator && !out.empty() && out.back() == '-') continue;
    out += separator ? '-' : (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

PythonMetadata parse_python_metadata(std::string_view text) {
  PythonMetadata out;
  for_each_header(text, [&](std::string_view key, const std::string& value) {
    if (equal_ignoring_case(key, "Name")) {
      if (out.name.empty()) out.name = value;
    } else if (equal_ignoring_case(key, "Version")) {
      if (out.version.empty()) out.version = value;
    } else if (equal_ignoring_case(key, "Requires-Dist") &&
               out.requires_dist.size() < k_max_requires) {
      out.requires_dist.push_back(value);
    }
  });
  return out;
}

std::vector<std::string> header_values(std::string_view text, std::string_view wanted) {
  std::vector<std::string> out;
  for_each_header(text, [&](std::string_view key, const std::string& value) {
    if (equal_ignoring_case(key, wanted) && out.size() < k_max_requires) out.push_back(value);
  });
  return out;
}

std::optional<FolderName> parse_metadata_folder(std::string_view file_name) {
  FolderName out;
  for (std::string_view suffix : {std::string_view("dist-info"), std::string_view("egg-info")}) {
    if (file_name.size() > suffix.size() + 1 && ends_with(file_name, suffix) &&
        file_name[file_name.size() - suffix.size() - 1] == '.') {
      out.suffix = suffix;
    }
  }
  if (out.suffix.empty()) return std::nullopt;
  std::string_view stem = file_name.substr(0, file_name.size() - out.suffix.size() - 1);
  // Builders write the name with "_" for "-"; very old ones kept "-", and a version begins with a
  // digit.
  size_t dash = stem.find('-');
  while (dash != std::string_view::npos && dash + 1 < stem.size() &&
         !(stem[dash + 1] >= '0' && stem[dash + 1] <= '9'))
    dash = stem.find('-', dash + 1);
  out.name = stem.substr(0, dash);
  if (dash != std::string_view::npos) out.version = stem.substr(dash + 1);
  if (size_t end = out.version.find('-'); end != std::string::npos)
    out.version.resize(end);  // "-py3.12"
  return out;
}

namespace {

// Size is the last field; neither hash nor size holds a comma.
std::optional<uint64_t> record_size(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const size_t comma = line.rfind(',');
  return comma == std::string_view::npos ? std::nullopt : parse_uint(line.substr(comma + 1));
}

bool is_made_by_installer(std::string_view line) {
  return line.find(".pyc") != std::string_view::npos ||
         line.find(".dist-info/") != std::string_view::npos;
}

// Many packages are installed without their tests to save space.
bool is_test_file(std::string_view path) {
  return contains(path, "/tests/") || contains(path, "/test/") || contains(path, "/_tests/");
}

}  // namespace

RecordSummary parse_record(std::string_view text, RecordFiles wanted) {
  RecordSummary out;
  uint64_t number = 0;
  while (!text.empty()) {
    ++number;
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line == "\r") continue;
    ++out.files;
    // torch's RECORD has 14 000 lines, of which a fifth are code: look before cutting.
    if (is_made_by_installer(line)) continue;
    const bool code =
        line.find(".so") != std::string_view::npos || line.find(".py") != std::string_view::npos;
    if (!code && wanted == RecordFiles::code) continue;
    auto path = record_path(line);
    if (!path || path->find('\0') != std::string::npos) {
      if (out.bad_lines.size() < k_max_bad_lines) out.bad_lines.push_back(number);
      continue;
    }
    const bool library = is_shared_object_name(*path), module = ends_with(*path, ".py");
    if (wanted == RecordFiles::all || library || (module && !is_test_file(*path)))
      out.wanted.push_back({*path, record_size(line)});
    if (library) {
      out.shared_objects.push_back(std::move(*path));
    } else if (is_top_level_init(*path)) {
      out.packages.push_back(std::move(*path));
    }
  }
  return out;
}

bool is_shared_object_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (ends_with(name, ".so")) return true;
  size_t at = name.rfind(".so.");
  if (at == std::string_view::npos || at + 4 == name.size()) return false;
  return name.find_first_not_of("0123456789.", at + 4) == std::string_view::npos;
}

std::string python_tag_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!ends_with(name, ".so")) return {};
  for (std::string_view part : split(name, '.')) {
    if (part == "abi3") return "abi3";
    if (!starts_with(part, "cpython-") && !starts_with(part, "pypy")) continue;
    // "cpython-312-x86_64-linux-gnu"
    size_t dash = part.find('-', starts_with(part, "cpython-") ? 8 : 0);
    return std::string(part.substr(0, dash));
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> parse_pyvenv_cfg(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string_view line : split_lines(text)) {
    size_t equals = line.find('=');
    if (equals == std::string_view::npos || out.size() >= 256) continue;
    out.emplace_back(lower(trim(line.substr(0, equals))),
                     std::string(trim(line.substr(equals + 1))));
  }
  return out;
}

PthFile parse_pth(std::string_view text) {
  PthFile out;
  if (starts_with(text, "\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::string_view line : split_lines(text)) {
    if (starts_with(line, "#") || trim(line).empty()) continue;
    if (starts_with(line, "import ") || starts_with(line, "import\t")) {
      ++out.imports;
    } else if (line.find('\0') == std::string_view::npos && out.folders.size() < 1024) {
      out.folders.emplace_back(trim(line));
    }
  }
  return out;
}

}  // namespace cufit::formats
