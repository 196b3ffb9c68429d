// SPDX-License-Identifier: Apache-2.0
#include "formats/python/torch_preload.h"

#include <optional>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_steps = 64;

struct Literal {
  std::string_view text;
  size_t begin = 0, end = 0;  // of the quotes; end is one past
};

// The part of the file that decides, without comment lines.
std::string relevant_part(std::string_view text) {
  size_t begin = text.find("def _preload_cuda_deps(");
  if (begin == std::string_view::npos) return {};
  size_t end = text.find("USE_RTLD_GLOBAL_WITH_LIBTORCH or", begin);
  std::string out;
  for (std::string_view line :
       split_lines(text.substr(begin, end == std::string_view::npos ? 20000 : end - begin))) {
    if (starts_with(trim(line), "#")) continue;
    out += line;
    out += '\n';
  }
  return out;
}

std::optional<Literal> next_literal(std::string_view text, size_t from) {
  size_t begin = text.find('"', from);
  if (begin == std::string_view::npos) return std::nullopt;
  size_t end = text.find('"', begin + 1);
  if (end == std::string_view::npos) return std::nullopt;
  return Literal{text.substr(begin + 1, end - begin - 1), begin, end + 1};
}

bool is_library_pattern(std::string_view text) {
  // Matching goes back at every "*": torch's patterns have one, a hostile file must not have many.
  size_t star = text.find('*');
  bool few_stars =
      star == std::string_view::npos || text.find('*', star + 1) == std::string_view::npos;
  return starts_with(text, "lib") && contains(text, ".so") && text.size() < 80 &&
         !contains(text, "/") && few_stars;
}

}  // namespace

TorchPreload parse_torch_preload(std::string_view init_py) {
  TorchPreload out;
  std::string text = relevant_part(init_py);
  if (text.empty()) return out;
  out.looks_in_cuda_major_folder = contains(init_py, "f\"cu{maj_cuda_version}\"");
  bool both_cases = contains(text, " _preload_cuda_deps()");
  std::optional<Literal> before;
  for (auto literal = next_literal(text, 0); literal; literal = next_literal(text, literal->end)) {
    if (before && is_library_pattern(literal->text) && out.after_failure.size() < k_max_steps) {
      std::string between(
          trim(std::string_view(text).substr(before->end, literal->begin - before->end)));
      std::string_view left = std::string_view(text).substr(0, before->begin);
      PreloadStep step{std::string(before->text), std::string(literal->text), true};
      if (between == ":" || between == "] =") {
        out.after_failure.push_back(std::move(step));
      } else if (between == "," && ends_with(left, " _preload_cuda_deps(")) {
        out.after_success.push_back(std::move(step));
      } else if (between == "," && ends_with(left, "(")) {
        step.required =
            !starts_with(trim(std::string_view(text).substr(literal->end)), ", required=False");
        if (both_cases) out.after_success.push_back(step);
        out.after_failure.push_back(std::move(step));
      }
    }
    if (starts_with(trim(std::string_view(text).substr(literal->end)), "not in _maps"))
      out.maps_marker = literal->text;
    before = literal;
  }
  return out;
}

bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*') {
    for (size_t skip = 0; skip <= name.size(); ++skip)
      if (matches_pattern(name.substr(skip), pattern.substr(1))) return true;
    return false;
  }
  if (name.empty()) return false;
  if (starts_with(pattern, "[0-9]"))
    return name[0] >= '0' && name[0] <= '9' && matches_pattern(name.substr(1), pattern.substr(5));
  return name[0] == pattern[0] && matches_pattern(name.substr(1), pattern.substr(1));
}

}  // namespace cufit::formats
