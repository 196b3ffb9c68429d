// SPDX-License-Identifier: Apache-2.0
// Requirements, versions and requirements files: any text; the order of two versions must not
// depend on which is asked first, and a version satisfies what says exactly it.
#include "formats/python/requirement.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t half = text.find('\n');
  const std::string_view first = text.substr(0, half);
  const std::string_view second = half == std::string_view::npos ? "" : text.substr(half + 1);
  (void)parse_requirements_file(text, "fuzz");
  (void)parse_requirement(first);
  if (const auto clauses = parse_clauses(first)) (void)satisfies(*clauses, second);
  const auto a = parse_python_version(first), b = parse_python_version(second);
  if (!a) return 0;
  if (compare(*a, *a) != 0) std::abort();
  if (b && (compare(*a, *b) < 0) != (compare(*b, *a) > 0)) std::abort();
  if (!satisfies({{"==", std::string(first)}}, first)) std::abort();
  return 0;
}
