// SPDX-License-Identifier: Apache-2.0
#include "formats/system/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <istream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_depth = 100, k_most_nodes = 1'000'000, k_most_repeats = 100;

size_t count_nodes(const YamlNode& node) {
  size_t count = 1;
  for (const YamlNode& item : node.items) count += count_nodes(item);
  return count;
}

size_t depth_of(const YamlNode& node) {
  size_t depth = 0;
  for (const YamlNode& item : node.items) depth = std::max(depth, depth_of(item));
  return depth + 1;
}

// What a reader must not go on with. Thrown out of yaml-cpp's parser, caught below in this file.
struct TooMuch {
  size_t line;
  const char* what;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(size_t first_line, size_t& nodes) : first_line_(first_line), nodes_(nodes) {}

  YamlNode root;
  bool has_root = false;
  std::vector<YamlRepeat> repeats;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node = made(mark, YamlNode::Kind::null);
    put(std::move(node), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = made(mark, YamlNode::Kind::scalar);
    node.quoted = tag != "?";  // "!!str 1" too
    node.text = value;
    put(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    YamlNode node = found == anchors_.end() ? YamlNode() : found->second;
    node.line = line_of(mark);
    count(mark, count_nodes(node));
    if (open_.size() + depth_of(node) > k_most_depth)
      throw TooMuch{line_of(mark), "nested too deeply"};
    put(std::move(node), 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, YamlNode::Kind::sequence, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, YamlNode::Kind::map, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    bool key_is_text = true;
    std::set<std::string> own_keys;  // without merged ones
  };

  size_t line_of(const YAML::Mark& mark) const {
    return first_line_ + static_cast<size_t>(std::max(mark.line, 0));
  }

  void count(const YAML::Mark& mark, size_t more) {
    nodes_ += more;
    if (nodes_ > k_most_nodes) throw TooMuch{line_of(mark), "too many values"};
  }

  YamlNode made(const YAML::Mark& mark, YamlNode::Kind kind) {
    count(mark, 1);
    YamlNode node;
    node.kind = kind;
    node.line = line_of(mark);
    return node;
  }

  void open(const YAML::Mark& mark, YamlNode::Kind kind, YAML::anchor_t anchor) {
    if (open_.size() >= k_most_depth) throw TooMuch{line_of(mark), "nested too deeply"};
    open_.push_back({made(mark, kind), anchor, false, true, {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    put(std::move(done.node), done.anchor);
  }

  // `<<: *defaults`: what the map itself says goes before it.
  static void merge(YamlNode& map, const YamlNode& from) {
    if (from.is_sequence())
      for (const YamlNode& one : from.items) merge_one(map, one);
    else
      merge_one(map, from);
  }
  static void merge_one(YamlNode& map, const YamlNode& from) {
    if (!from.is_map()) return;
    for (size_t i = 0; i < from.keys.size(); ++i) {
      if (map.find(from.keys[i]) != nullptr) continue;
      map.keys.push_back(from.keys[i]);
      map.key_lines.push_back(from.key_lines[i]);
      map.items.push_back(from.items[i]);
    }
  }

  void put(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count_copy(node);
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root = std::move(node);
      has_root = true;
      return;
    }
    Open& into = open_.back();
    if (into.node.is_map() && !into.has_key) {
      into.has_key = true;
      into.key_is_text = node.is_scalar();
      if (node.is_scalar() && !into.own_keys.insert(node.text).second &&
          repeats.size() < k_most_repeats)
        repeats.push_back({node.line, node.text});
      into.node.keys.push_back(node.is_scalar() ? std::move(node.text) : std::string());
      into.node.key_lines.push_back(node.line);
      return;
    }
    into.has_key = false;
    if (into.node.is_map() && into.key_is_text && into.node.keys.back() == "<<") {
      into.node.keys.pop_back();
      into.node.key_lines.pop_back();
      merge(into.node, node);
      return;
    }
    into.node.items.push_back(std::move(node));
  }

  void count_copy(const YamlNode& node) {
    nodes_ += count_nodes(node);
    if (nodes_ > k_most_nodes) throw TooMuch{node.line, "too many values"};
  }

  size_t first_line_;
  size_t& nodes_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
};

constexpr const char* k_text_behind = "text behind the end of a document";

struct Piece {
  size_t first_line = 1;
  std::string text;
  bool has_content = false;  // more than comments, blanks and directives
};

bool is_marker(std::string_view line, std::string_view marker) {
  return starts_with(line, marker) &&
         (line.size() == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r');
}

// "---" at the beginning of a line divides documents wherever it stands (YAML 1.2, 9.1.2).
std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> out(1);
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view one = text.substr(at, end - at);
    ++line;
    if (is_marker(one, "---") || is_marker(one, "...")) {
      out.push_back({});
      out.back().first_line = line;
      const std::string_view rest = trim(one.substr(3));
      if (is_marker(one, "---") && !rest.empty() && rest[0] != '#') {
        // "--- {a: 1}": what follows the marker belongs to the document
        out.back().text = "   " + std::string(one.substr(3)) + "\n";
        out.back().has_content = true;
      } else {
        out.back().text = "\n";
      }
    } else {
      const std::string_view word = trim(one);
      if (!word.empty() && word[0] != '#' && one[0] != '%') out.back().has_content = true;
      // A directive is of no use to what is read here, and makes a document of its own.
      out.back().text += !one.empty() && one[0] == '%' ? std::string() : std::string(one);
      out.back().text += '\n';
    }
    at = end + 1;
  }
  return out;
}

void read_piece(const Piece& piece, size_t& nodes, YamlText& out) {
  TreeBuilder builder(piece.first_line, nodes);
  try {
    std::istringstream stream(piece.text);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (builder.has_root && builder.root.kind != YamlNode::Kind::null)
      out.documents.push_back(std::move(builder.root));
    for (YamlRepeat& one : builder.repeats)
      if (out.repeats.size() < k_most_repeats) out.repeats.push_back(std::move(one));
    // "{{ .Values.x }}" is a document of its own to the parser, which stops behind it.
    TreeBuilder rest(piece.first_line, nodes);
    if (parser.HandleNextDocument(rest))
      throw TooMuch{rest.has_root ? rest.root.line : piece.first_line, k_text_behind};
  } catch (const TooMuch& error) {
    out.damage.push_back({error.line, error.what});
  } catch (const YAML::Exception& error) {
    const size_t line = piece.first_line + static_cast<size_t>(std::max(error.mark.line, 0));
    out.damage.push_back({line, printable(error.msg, 200)});
  } catch (const std::exception& error) {
    out.damage.push_back({piece.first_line, printable(error.what(), 200)});
  }
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (size_t i = keys.size(); i-- > 0;)
    if (keys[i] == key && i < items.size()) return &items[i];
  return nullptr;
}

const YamlNode& YamlNode::at(std::initializer_list<std::string_view> path) const {
  static const YamlNode k_none;
  const YamlNode* node = this;
  for (const std::string_view key : path) {
    node = node->find(key);
    if (node == nullptr) return k_none;
  }
  return *node;
}

size_t YamlNode::line_of(std::string_view key) const {
  for (size_t i = keys.size(); i-- > 0;)
    if (keys[i] == key) return key_lines[i];
  return line;
}

Result<YamlText> parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > k_most_yaml_bytes)
    return fail(Code::malformed,
                format("`{}` has more than {}", file, format_bytes(k_most_yaml_bytes)));
  const std::vector<Piece> pieces = pieces_of(text);
  if (pieces.size() > k_most_yaml_documents)
    return fail(Code::malformed,
                format("`{}` has more than {} documents", file, k_most_yaml_documents));
  YamlText out;
  size_t nodes = 0;
  for (const Piece& piece : pieces)
    if (piece.has_content) read_piece(piece, nodes, out);
  return out;
}

}  // namespace cufit::formats
