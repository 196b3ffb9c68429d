// SPDX-License-Identifier: Apache-2.0
// YAML (and JSON, which is YAML) of any shape as a tree, each node with its line: manifests of
// Kubernetes. Read with yaml-cpp's events, so that depth, aliases and size are bounded while the
// text is read and not after it. A file of several documents is cut at its "---" lines first: one
// that is damaged costs itself alone.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct YamlNode {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  bool quoted = false;            // a scalar in quotes: "1" is no number
  size_t line = 0;                // from 1; of an alias that of the alias
  std::string text;               // of a scalar
  std::vector<std::string> keys;  // of a map, as many as items; "<<" is merged already
  std::vector<size_t> key_lines;
  std::vector<YamlNode> items;  // of a map and a sequence

  bool is_map() const { return kind == Kind::map; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_scalar() const { return kind == Kind::scalar; }
  // The last value of that name, as Kubernetes takes it; nullptr = none, or no map.
  const YamlNode* find(std::string_view key) const;
  // The same, down a path; a null node where it ends.
  const YamlNode& at(std::initializer_list<std::string_view> path) const;
  const YamlNode& at(std::string_view key) const { return at({key}); }
  // Line of the key; the map's own where it is not there.
  size_t line_of(std::string_view key) const;
};

struct YamlDamage {
  size_t line = 0;
  std::string what;
};

// A key that a map itself has twice; one that a merged map has as well is none.
struct YamlRepeat {
  size_t line = 0;
  std::string key;
};

struct YamlText {
  std::vector<YamlNode> documents;  // without empty ones
  std::vector<YamlDamage> damage;   // documents that could not be read
  std::vector<YamlRepeat> repeats;  // of `documents`, at most 100
};

constexpr size_t k_most_yaml_bytes = size_t{16} << 20;
constexpr size_t k_most_yaml_documents = 2000;

// Error{malformed}: `file` is larger than it may be or has too many documents. At most 100 levels
// and 1,000,000 nodes, what aliases stand for counted each time.
Result<YamlText> parse_yaml(std::string_view text, const std::string& file);

}  // namespace cufit::formats
