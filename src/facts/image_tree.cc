// SPDX-License-Identifier: Apache-2.0
#include "facts/image_tree.h"

#include <algorithm>
#include <unordered_map>

#include "base/format.h"

namespace cufit::facts {
namespace {

using formats::TarType;

constexpr int k_max_links = 40;  // as the kernel's own limit
constexpr std::string_view k_whiteout = ".wh.", k_opaque = ".wh..wh..opq";

void push_parts(std::string_view path, std::vector<std::string>& waiting) {
  const std::vector<std::string_view> parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (!part->empty() && *part != ".") waiting.emplace_back(*part);
}

}  // namespace

// Upper layers first, so that what they say stands when a lower one comes.
ImageTree::ImageTree(const std::vector<ImageLayer>& layers) {
  nodes_.emplace_back();
  nodes_[0].exists = true;
  for (size_t i = layers.size(); i-- > 0;) {
    for (const LayerFile& file : layers[i].files) add(file, i);
    join_hard_links(layers[i]);
  }
}

uint32_t ImageTree::child(uint32_t parent, const std::string& name) {
  const auto [place, is_new] =
      nodes_[parent].children.emplace(name, static_cast<uint32_t>(nodes_.size()));
  if (is_new) nodes_.emplace_back();
  return place->second;
}

void ImageTree::add(const LayerFile& file, size_t layer) {
  std::vector<std::string> parts;
  push_parts(file.path, parts);  // the last part first
  if (parts.empty()) return;
  std::string name = parts.front();
  const bool opaque = name == k_opaque;
  const bool whiteout = !opaque && starts_with(name, k_whiteout);
  if (opaque) parts.erase(parts.begin());
  if (whiteout) parts.front() = name.substr(k_whiteout.size());
  uint32_t at = 0;
  const auto hide = [&] {
    if (file.type == TarType::file && file.size_bytes > 0 && !opaque && !whiteout)
      hidden_.push_back({file.path, file.size_bytes, layer});
  };
  if (nodes_[at].cut > layer) return hide();
  while (!parts.empty()) {
    at = child(at, parts.back());
    parts.pop_back();
    Node& node = nodes_[at];
    if (node.cut > layer) return hide();
    if (parts.empty()) break;
    if (node.exists && node.type != TarType::directory) {
      if (node.layer > layer) return hide();  // a file lies where this layer has a folder
      node.type = TarType::directory;  // an archive that contradicts itself: the later counts
    }
    if (!node.exists) {  // a folder without an entry of its own
      node.exists = true;
      node.type = TarType::directory;
      node.layer = layer;
    }
  }
  Node& node = nodes_[at];
  if (opaque || whiteout) {
    node.cut = layer;
    return;
  }
  if (node.exists && node.layer > layer) {
    if (node.type == TarType::directory && file.type == TarType::directory) return;
    if (file.type != TarType::directory) node.cut = std::max(node.cut, layer);
    return hide();
  }
  const bool folder_again =
      node.exists && node.type == TarType::directory && file.type == TarType::directory;
  if (!folder_again && file.type != TarType::directory) node.cut = layer;
  node.exists = true;
  node.type = file.type;
  node.layer = layer;
  node.file = file;
}

// A hard link stands for a file of its own layer, also where an upper layer hides that one.
void ImageTree::join_hard_links(const ImageLayer& layer) {
  std::unordered_map<std::string_view, const LayerFile*> files;
  bool any = false;
  for (const LayerFile& file : layer.files) any = any || file.type == TarType::hardlink;
  if (!any) return;
  for (const LayerFile& file : layer.files)
    if (file.type == TarType::file || file.type == TarType::hardlink) files[file.path] = &file;
  for (const LayerFile& file : layer.files) {
    if (file.type != TarType::hardlink) continue;
    std::string path = file.path;
    const Node* found = find(path, false);
    if (found == nullptr || found->type != TarType::hardlink || found->file.path != file.path)
      continue;
    const LayerFile* target = &file;
    for (int i = 0; i < k_max_links && target != nullptr && target->type == TarType::hardlink;
         ++i) {
      const auto next = files.find(target->link);
      target = next == files.end() ? nullptr : next->second;
    }
    Node& node = const_cast<Node&>(*found);  // find() is the const way to a node of ours
    if (target == nullptr || target->type != TarType::file) {
      problems_.push_back(format("`{}` is a hard link to `{}`, which its layer does not have",
                                 file.path, file.link));
      node.type = TarType::other;
      continue;
    }
    node.type = TarType::file;
    node.file.content = target->content;
    node.file.size_bytes = target->size_bytes;
    node.file.mode = target->mode;
  }
}

const ImageTree::Node* ImageTree::find(std::string& path, bool follow_last) const {
  std::vector<std::string> waiting;
  push_parts(path, waiting);
  std::vector<uint32_t> above = {0};  // the way down, for ".."
  std::vector<std::string> names;
  int links = 0;
  while (!waiting.empty()) {
    const std::string part = std::move(waiting.back());
    waiting.pop_back();
    if (part == "..") {
      if (above.size() > 1) {
        above.pop_back();
        names.pop_back();
      }
      continue;
    }
    const Node& folder = nodes_[above.back()];
    const auto next = folder.children.find(part);
    if (folder.type != TarType::directory || next == folder.children.end() ||
        !nodes_[next->second].exists)
      return nullptr;
    const Node& node = nodes_[next->second];
    if (node.type == TarType::symlink && (!waiting.empty() || follow_last)) {
      if (++links > k_max_links) return nullptr;
      if (starts_with(node.file.link, "/")) {
        above.resize(1);
        names.clear();
      }
      push_parts(node.file.link, waiting);
      if (waiting.size() > 4096) return nullptr;
      continue;
    }
    above.push_back(next->second);
    names.push_back(part);
  }
  path = names.empty() ? "/" : "/" + join(names, "/");
  return &nodes_[above.back()];
}

}  // namespace cufit::facts
