// SPDX-License-Identifier: Apache-2.0
#include "formats/system/tool_versions.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr std::string_view k_digits = "0123456789";
constexpr size_t k_tool_versions_longest = 200;  // characters of either text

bool is_plain(std::string_view text) {
  return text.size() <= k_tool_versions_longest &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// "12.2.0", "8.5.0 20210514 (Red Hat 8.5.0-22)"
bool is_gcc_number(std::string_view text) {
  if (!is_plain(text)) return false;
  std::string_view number = text.substr(0, text.find(' '));
  if (std::count(number.begin(), number.end(), '.') != 2) return false;
  for (std::string_view part : split(number, '.'))
    if (part.empty() || part.size() > 3 ||
        part.find_first_not_of(k_digits) != std::string_view::npos)
      return false;
  return true;
}

// The texts before and behind [start, end) across the NULs that end and align them.
std::string_view text_before(std::string_view bytes, size_t start) {
  size_t floor = start > k_tool_versions_longest + 64 ? start - k_tool_versions_longest - 64 : 0;
  size_t end = start;
  while (end > floor && bytes[end - 1] == '\0') --end;
  size_t first = end;
  while (first > floor && bytes[first - 1] != '\0') --first;
  return bytes.substr(first, end - first);
}
std::string_view text_behind(std::string_view bytes, size_t end) {
  std::string_view rest = bytes.substr(end, k_tool_versions_longest + 64);
  size_t first = rest.find_first_not_of('\0');
  if (first == std::string_view::npos) return {};
  rest.remove_prefix(first);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

std::string gcc_version_in(std::string_view program) {
  constexpr std::string_view k_end(") \0", 3);
  std::string found;
  for (size_t at = program.find(k_end); at != std::string_view::npos;
       at = program.find(k_end, at + 1)) {
    size_t start = at;
    while (start > 0 && program[start - 1] != '\0' && at - start < k_tool_versions_longest) --start;
    std::string_view package = program.substr(start, at + 1 - start);
    if (package[0] != '(' || !is_plain(package)) continue;
    std::string_view number = text_before(program, start);
    if (!is_gcc_number(number)) number = text_behind(program, at + k_end.size());
    if (!is_gcc_number(number)) continue;
    std::string one = format("{} {}", package, number);
    if (!found.empty() && found != one) return {};
    found = std::move(one);
  }
  return found;
}

std::string nvcc_version_in(std::string_view program) {
  constexpr std::string_view k_line = "Cuda compilation tools, release ";
  for (size_t at = program.find(k_line); at != std::string_view::npos;
       at = program.find(k_line, at + 1)) {
    std::string_view line = program.substr(at, k_tool_versions_longest);
    line = line.substr(0, line.find_first_of(std::string_view("\n\0", 2)));
    size_t version = line.find(", V");
    if (version == std::string_view::npos) continue;
    std::string_view number = line.substr(version + 3);
    number = number.substr(0, number.find_first_not_of("0123456789."));
    if (std::count(number.begin(), number.end(), '.') == 2 && number.size() < 32)
      return std::string(number);
  }
  return {};
}

std::string dpkg_version(std::string_view status, std::string_view package) {
  const std::string start = format("Package: {}\n", package);
  for (size_t at = status.find(start); at != std::string_view::npos;
       at = status.find(start, at + 1)) {
    if (at > 0 && status[at - 1] != '\n') continue;
    std::string_view paragraph = status.substr(at);
    paragraph = paragraph.substr(0, paragraph.find("\n\n"));
    bool installed = false;
    std::string_view version;
    for (std::string_view line : split_lines(paragraph)) {
      if (starts_with(line, "Status: "))
        installed = ends_with(line, " installed") && !contains(line, "not-installed");
      if (starts_with(line, "Version: ")) version = trim(line.substr(9));
    }
    if (installed && is_plain(version))
      return std::string(version);  // one of several architectures may be removed
  }
  return {};
}

std::string dpkg_upstream(std::string_view version) {
  size_t colon = version.find(':');
  if (colon != std::string_view::npos) version.remove_prefix(colon + 1);
  return std::string(version.substr(0, version.rfind('-')));
}

}  // namespace cufit::formats
