// SPDX-License-Identifier: Apache-2.0
#include "formats/python/wheel_name.h"

#include "base/format.h"
#include "base/number.h"
#include "formats/python/python_metadata.h"

namespace cufit::formats {
namespace {

std::vector<std::string> tags(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view tag : split(text, '.')) out.emplace_back(tag);
  return out;
}

bool has(const std::vector<std::string>& tags, const std::string& wanted) {
  for (const std::string& tag : tags)
    if (tag == wanted) return true;
  return false;
}

// "manylinux_2_28_x86_64", "manylinux2014_x86_64", "linux_x86_64"
bool platform_fits(const std::string& tag, const std::string& machine, const Version& glibc) {
  if (tag == "any" || tag == "linux_" + machine) return true;
  if (!ends_with(tag, "_" + machine)) return false;
  const std::string head = tag.substr(0, tag.size() - machine.size() - 1);
  if (head == "manylinux1") return glibc >= *parse_version("2.5");
  if (head == "manylinux2010") return glibc >= *parse_version("2.12");
  if (head == "manylinux2014") return glibc >= *parse_version("2.17");
  if (!starts_with(head, "manylinux_")) return false;
  std::string number = head.substr(10);
  if (const size_t dash = number.find('_'); dash != std::string::npos) number[dash] = '.';
  const std::optional<Version> needed = parse_version(number);
  return needed && glibc >= *needed;
}

}  // namespace

std::optional<WheelName> parse_wheel_name(std::string_view file_name) {
  if (!ends_with(file_name, ".whl")) return std::nullopt;
  std::vector<std::string_view> parts = split(file_name.substr(0, file_name.size() - 4), '-');
  if (parts.size() < 5 || parts.size() > 7) return std::nullopt;
  for (const std::string_view part : parts)
    if (part.empty()) return std::nullopt;
  // A build begins with a digit, a tag of Python never does.
  const bool has_build = parts.size() > 5 && parts[2][0] >= '0' && parts[2][0] <= '9';
  if (parts.size() == 7 && (!has_build || (parts[3][0] >= '0' && parts[3][0] <= '9')))
    return std::nullopt;
  WheelName out;
  out.name = normalize_name(parts[0]);
  out.version = std::string(parts[1]);
  for (const char* plus : {"%2B", "%2b"})
    if (const size_t at = out.version.find(plus); at != std::string::npos)
      out.version.replace(at, 3, "+");
  if (parts.size() - (has_build ? 1 : 0) == 6) {
    out.variant = std::string(parts.back());
    parts.pop_back();
  }
  if (has_build) out.build = std::string(parts[2]);
  out.pythons = tags(parts[parts.size() - 3]);
  out.abis = tags(parts[parts.size() - 2]);
  out.platforms = tags(parts[parts.size() - 1]);
  return out;
}

bool fits(const WheelName& wheel, const std::string& python, const std::string& machine,
          const Version& glibc) {
  bool platform = false;
  for (const std::string& tag : wheel.platforms)
    platform = platform || platform_fits(tag, machine, glibc);
  if (!platform) return false;
  const bool free_threaded = !python.empty() && python.back() == 't';
  const std::string minor_text = free_threaded ? python.substr(0, python.size() - 1) : python;
  const std::vector<std::string_view> numbers = split(minor_text, '.');
  if (numbers.size() < 2) return false;
  const std::optional<uint64_t> minor = parse_uint(numbers[1]);
  const std::string own = "cp" + std::string(numbers[0]) + std::string(numbers[1]);  // "cp311"
  // "py3" and "py37" of an older minor: installers take both.
  const auto is_older = [&](const std::string& tag, std::string_view start) {
    if (!starts_with(tag, start)) return false;
    const std::optional<uint64_t> since = parse_uint(std::string_view(tag).substr(start.size()));
    return minor && since && *since <= *minor;
  };
  if (has(wheel.abis, "none"))
    for (const std::string& tag : wheel.pythons)
      if (tag == "py3" || is_older(tag, "py3") || tag == own ||
          tag == "cp" + std::string(numbers[0]))
        return true;
  if (free_threaded)  // abi3 is for the builds with a lock
    return has(wheel.pythons, own) && has(wheel.abis, own + "t");
  if (has(wheel.pythons, own)) return has(wheel.abis, own) || has(wheel.abis, "abi3");
  if (!has(wheel.abis, "abi3")) return false;
  // The stable ABI of an older minor serves every newer one.
  for (const std::string& tag : wheel.pythons)
    if (is_older(tag, "cp3")) return true;
  return false;
}

}  // namespace cufit::formats
