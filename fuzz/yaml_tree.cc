// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/kubernetes_objects.h"
#include "formats/system/yaml_tree.h"

namespace {

void look(const cufit::formats::YamlNode& node, size_t depth) {
  if (depth > 100) __builtin_trap();
  if (node.is_map() &&
      (node.keys.size() != node.items.size() || node.keys.size() != node.key_lines.size()))
    __builtin_trap();
  for (const cufit::formats::YamlNode& item : node.items) look(item, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = cufit::formats::parse_yaml(text, "pod.yaml");
  if (!tree) return 0;
  for (const auto& document : tree->documents) look(document, 1);
  const auto objects = cufit::formats::read_objects(*tree);
  for (const auto& pod : objects.pods)
    for (const auto& container : pod.containers)
      if (container.path.empty()) __builtin_trap();
  return 0;
}
