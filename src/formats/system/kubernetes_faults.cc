// SPDX-License-Identifier: Apache-2.0
#include "formats/system/kubernetes_faults.h"

#include "base/format.h"

namespace cufit::formats {
namespace {

using Kind = ManifestFault::Kind;

constexpr size_t k_most_faults = 100;

void note(Kind kind, const std::string& key, const std::string& path, size_t line,
          ManifestPod& pod) {
  if (pod.faults.size() < k_most_faults) pod.faults.push_back({kind, key, path, line});
}

// null is an empty list.
void note_lists(const YamlNode& map, const std::string& path,
                std::initializer_list<const char*> keys, ManifestPod& pod) {
  for (const char* key : keys) {
    const YamlNode* node = map.find(key);
    if (node != nullptr && (node->is_map() || node->is_scalar()))
      note(Kind::no_list, key, path, map.line_of(key), pod);
  }
}

// Numbers and words of truth as JSON has them: whatever reads YAML makes the same of these.
bool is_plain_number(const YamlNode& node) {
  if (!node.is_scalar() || node.quoted) return false;
  const std::string& text = node.text;
  if (text == "true" || text == "false") return true;
  const size_t first = !text.empty() && text[0] == '-' ? 1 : 0;
  const size_t point = text.find('.');
  const std::string whole = text.substr(first, point - first);
  const std::string rest = point == std::string::npos ? "0" : text.substr(point + 1);
  constexpr const char* k_digits = "0123456789";
  return !whole.empty() && !rest.empty() && text.size() < 15 &&
         whole.find_first_not_of(k_digits) == std::string::npos &&
         rest.find_first_not_of(k_digits) == std::string::npos &&
         (whole.size() == 1 || whole[0] != '0');
}

void note_container(const YamlNode& container, const std::string& path, ManifestPod& pod) {
  note_lists(container, path, {"command", "args", "env", "envFrom", "ports", "volumeMounts"}, pod);
  for (const char* key : {"limits", "requests"})
    if (container.find(key) != nullptr)
      note(Kind::outside_resources, key, path, container.line_of(key), pod);
  const YamlNode* resources = container.find("resources");
  if (resources != nullptr && (resources->is_sequence() || resources->is_scalar()))
    note(Kind::no_map, "resources", path, container.line_of("resources"), pod);
  const YamlNode& variables = container.at("env");
  if (!variables.is_sequence()) return;
  for (const YamlNode& one : variables.items) {
    const YamlNode* value = one.find("value");
    if (value == nullptr || !is_plain_number(*value)) continue;
    const YamlNode& name = one.at("name");
    note(Kind::no_text, name.is_scalar() ? name.text : "value", path, one.line_of("value"), pod);
  }
}

}  // namespace

void note_faults(const YamlNode& spec, const std::string& path, ManifestPod& pod) {
  note_lists(spec, path, {"containers", "initContainers", "volumes", "tolerations"}, pod);
  for (const char* key : {"containers", "initContainers"}) {
    const YamlNode& list = spec.at(key);
    if (!list.is_sequence()) continue;
    for (size_t i = 0; i < list.items.size(); ++i)
      if (list.items[i].is_map())
        note_container(list.items[i], format("{}.{}[{}]", path, key, i), pod);
  }
}

}  // namespace cufit::formats
