// SPDX-License-Identifier: Apache-2.0
// Look-ups about the modules that packages with compiled CUDA code bring.
#include <algorithm>

#include "base/format.h"
#include "formats/python/python_metadata.h"
#include "knowledge/knowledge.h"

namespace cufit::knowledge {
namespace {

bool lists(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> words = split(list, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

const ExtensionModuleRow* Knowledge::find_extension_module(std::string_view module) const {
  const std::string first = lower(module.substr(0, module.find('.')));
  if (first.empty()) return nullptr;
  for (const ExtensionModuleRow& row : extension_modules) {
    if (lower(row.import) == first || lists(row.modules, first)) return &row;
  }
  return nullptr;
}

const ExtensionModuleRow* Knowledge::find_extension_package(std::string_view package) const {
  const std::string name = formats::normalize_name(package);
  if (name.empty()) return nullptr;
  for (const ExtensionModuleRow& row : extension_modules) {
    if (formats::normalize_name(row.package) == name || lists(row.also, name)) return &row;
  }
  return nullptr;
}

}  // namespace cufit::knowledge
