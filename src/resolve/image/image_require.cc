// SPDX-License-Identifier: Apache-2.0
#include "resolve/image/image_require.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::resolve {
namespace {

enum class Holds { no, not_known, yes };

Holds both(Holds a, Holds b) { return std::min(a, b); }
Holds either(Holds a, Holds b) { return std::max(a, b); }

Holds compare_versions(const Version& have, std::string_view sign, const Version& want) {
  const bool holds = sign == ">="   ? have >= want
                     : sign == "<=" ? have <= want
                     : sign == ">"  ? have > want
                     : sign == "<"  ? have < want
                     : sign == "!=" ? have != want
                                    : have == want;
  return holds ? Holds::yes : Holds::no;
}

// NVML's brand of a GPU is not in its name; only that it is none of another line of products is.
Holds brand_holds(const Target& target, std::string_view sign, const std::string& brand) {
  if (sign != "=" || brand == "unknown" || target.gpus.empty()) return Holds::not_known;
  const bool of_geforce = starts_with(brand, "geforce");
  for (const TargetGpu& gpu : target.gpus)
    if (contains(gpu.name, "GeForce") != of_geforce) return Holds::no;
  return Holds::not_known;
}

Holds clause_holds(const Target& target, std::string_view text) {
  const size_t at = text.find_first_of("<>=!");
  if (at == std::string_view::npos) return Holds::not_known;
  const std::string_view name = text.substr(0, at);
  const size_t end = text.find_first_not_of("<>=!", at);
  if (end == std::string_view::npos) return Holds::not_known;
  const std::string_view sign = text.substr(at, end - at);
  if (name == "brand") return brand_holds(target, sign, std::string(text.substr(end)));
  const std::optional<Version> want = parse_version(text.substr(end));
  if (!want) return Holds::not_known;
  if (name == "cuda" && target.driver_cuda)
    return compare_versions(*target.driver_cuda, sign, *want);
  if (name == "driver" && target.driver) {
    // "535" says a branch: which release of it, is not known.
    const Version& have = *target.driver;
    const bool of_branch = want->parts.size() == 1 && (sign == ">=" || sign == "<");
    if (have.parts.size() == 1 && want->part(0) == have.part(0) && !of_branch)
      return Holds::not_known;
    return compare_versions(have, sign, *want);
  }
  if (name == "arch" && !target.gpus.empty()) {
    Holds all = Holds::yes;
    for (const TargetGpu& gpu : target.gpus)
      all = both(all, compare_versions(Version{{gpu.cc.major, gpu.cc.minor}}, sign, *want));
    return all;
  }
  return Holds::not_known;
}

Holds requirement_holds(const Target& target, std::string_view text) {
  Holds any = Holds::no;
  bool asked = false;
  for (const std::string_view alternative : split(text, ' ')) {
    if (trim(alternative).empty()) continue;
    asked = true;
    Holds all = Holds::yes;
    for (const std::string_view clause : split(alternative, ','))
      all = both(all, clause_holds(target, trim(clause)));
    any = either(any, all);
  }
  return asked ? any : Holds::yes;
}

}  // namespace

std::string refused_by_require(const std::vector<std::pair<std::string, std::string>>& variables,
                               const Target& target) {
  for (const auto& [name, value] : variables)
    if (name == "NVIDIA_DISABLE_REQUIRE" && !value.empty()) return {};
  for (const auto& [name, value] : variables)
    if (starts_with(name, "NVIDIA_REQUIRE_") && requirement_holds(target, value) == Holds::no)
      return name + "=" + value;
  return {};
}

}  // namespace cufit::resolve
