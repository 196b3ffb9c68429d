// SPDX-License-Identifier: Apache-2.0
#include "explain/wheel_args.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/format.h"

namespace cufit::explain {
namespace {

constexpr size_t k_longest_line = 8192, k_longest_wheel = 160;

bool was_offered(std::span<const formats::TextLine> lines, const std::string& release) {
  static const RE2 offered(R"(from versions: ([^)]*))");
  for (const formats::TextLine& line : lines) {
    std::string list;
    if (!contains(line.text, "from versions:") ||
        !RE2::PartialMatch(line.text.substr(0, k_longest_line), offered, &list))
      continue;
    for (std::string_view one : split(list, ',')) {
      while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
      if (one == release) return true;
    }
  }
  return false;
}

void add_index(std::map<std::string, std::string>& args, std::span<const formats::TextLine> lines,
               const knowledge::Knowledge& knowledge) {
  const auto wanted = args.find("wanted_torch");
  if (wanted == args.end()) return;
  const size_t plus = wanted->second.find('+');
  if (plus == std::string::npos) return;
  const std::string release = wanted->second.substr(0, plus), tag = wanted->second.substr(plus + 1);
  const auto wheels = knowledge.wheels_of(release);
  const bool exists = std::any_of(wheels.begin(), wheels.end(),
                                  [&](const auto* wheel) { return wheel->tag == tag; });
  if (!exists) return;
  if (!was_offered(lines, release)) {
    args.emplace("other_index_tag", tag);
    return;
  }
  args.emplace("indexed_torch", wanted->second);
  args.emplace("indexed_tag", tag);
}

void add_abi(std::map<std::string, std::string>& args, std::span<const formats::TextLine> lines) {
  static const RE2 named(R"(\b([A-Za-z]\w+-[\w.+]+cxx11abi)(TRUE|FALSE)(-cp\d+-cp\d+-\w+\.whl)\b)");
  for (const formats::TextLine& line : lines) {
    std::string before, abi, after;
    if (!contains(line.text, "cxx11abi") ||
        !RE2::PartialMatch(line.text.substr(0, k_longest_line), named, &before, &abi, &after))
      continue;
    if (before.size() + after.size() > k_longest_wheel) continue;
    args.emplace("abi_wheel", before + (abi == "TRUE" ? "FALSE" : "TRUE") + after);
    return;
  }
}

}  // namespace

void add_wheel_args(std::map<std::string, std::string>& args,
                    std::span<const formats::TextLine> lines,
                    const knowledge::Knowledge& knowledge) {
  add_index(args, lines, knowledge);
  add_abi(args, lines);
}

}  // namespace cufit::explain
