// SPDX-License-Identifier: Apache-2.0
#include "formats/python/version_py.h"

#include "base/format.h"

namespace cufit::formats {
namespace {

// 'text', "text" or None; anything else is nullopt.
std::optional<PyConstant> parse_literal(std::string_view value) {
  if (value.empty()) return std::nullopt;
  if (value[0] == '\'' || value[0] == '"') {
    size_t end = value.find(value[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view rest = trim(value.substr(end + 1));
    if (!rest.empty() && rest[0] != '#') return std::nullopt;
    return PyConstant{true, std::string(value.substr(1, end - 1))};
  }
  if (trim(value.substr(0, value.find('#'))) == "None") return PyConstant{true, std::nullopt};
  return std::nullopt;
}

}  // namespace

TorchVersionFile parse_torch_version(std::string_view text) {
  TorchVersionFile out;
  for (std::string_view line : split_lines(text)) {
    size_t equals = line.find('=');
    if (equals == std::string_view::npos || line[0] == ' ' || line[0] == '\t' || line[0] == '#')
      continue;
    std::string_view name = line.substr(0, equals);
    name = trim(name.substr(0, name.find(':')));  // without the annotation
    std::string_view value = trim(line.substr(equals + 1));
    if (name == "debug") {
      value = trim(value.substr(0, value.find('#')));
      if (value == "True" || value == "False") out.debug = value == "True";
      continue;
    }
    PyConstant* constant = name == "__version__"   ? &out.version
                           : name == "cuda"        ? &out.cuda
                           : name == "hip"         ? &out.hip
                           : name == "xpu"         ? &out.xpu
                           : name == "git_version" ? &out.git
                                                   : nullptr;
    if (!constant) continue;
    if (auto literal = parse_literal(value)) *constant = std::move(*literal);
  }
  return out;
}

}  // namespace cufit::formats
