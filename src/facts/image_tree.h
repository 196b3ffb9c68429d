// SPDX-License-Identifier: Apache-2.0
// The files of a container image as a running container would see them: layers laid over each
// other, whiteouts applied (image-spec 1.1, layer.md), nothing unpacked. Paths begin with a slash;
// links are resolved inside the image.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "formats/archive/tar.h"

namespace cufit::facts {

// One entry of a layer.
struct LayerFile {
  formats::TarType type = formats::TarType::other;
  std::string path;  // "/usr/lib/x": no empty part, no "." and no ".."
  std::string link;  // of a symbolic link as written; of a hard link a path as above
  uint64_t size_bytes = 0;
  uint32_t mode = 0;
  uint32_t device_major = 0, device_minor = 0;
  std::shared_ptr<const ByteSource> content;  // null = not kept (see image_layer.h)
};

struct ImageLayer {
  std::string name;           // of the blob or member: "blobs/sha256/..."
  uint64_t stored_bytes = 0;  // as it lies in the image
  uint64_t expanded_bytes = 0;
  std::string sha256;     // of the stored bytes; empty where not all of them were read
  bool plain = false;     // stored as it is, so that the stored bytes are the expanded ones
  bool verified = false;  // against the digest that names it or that the configuration has
  std::vector<LayerFile> files;
};

// A file that upper layers delete or replace: its bytes stay in the image.
struct HiddenFile {
  std::string path;
  uint64_t size_bytes = 0;
  size_t layer = 0;
};

class ImageTree {
 public:
  struct Node {
    formats::TarType type = formats::TarType::directory;
    bool exists = false;
    size_t layer = 0;  // that it comes from
    size_t cut = 0;    // what layers below this one say of it and of what is in it is hidden
    LayerFile file;
    std::map<std::string, uint32_t> children;
  };

  // The base first.
  explicit ImageTree(const std::vector<ImageLayer>& layers);

  // Links in the middle are followed, the last one where `follow_last` says so. null = not there;
  // `path` becomes the path without links.
  const Node* find(std::string& path, bool follow_last = true) const;
  const std::vector<HiddenFile>& hidden() const { return hidden_; }
  const std::vector<std::string>& problems() const { return problems_; }

  // All regular files and hard links, by path.
  template <class Visit>
  void each_file(const Visit& visit) const {
    std::string path;
    walk(0, path, visit);
  }
  const Node& node(uint32_t index) const { return nodes_[index]; }

 private:
  void add(const LayerFile& file, size_t layer);
  void join_hard_links(const ImageLayer& layer);
  uint32_t child(uint32_t parent, const std::string& name);
  template <class Visit>
  void walk(uint32_t index, std::string& path, const Visit& visit) const {
    for (const auto& [name, at] : nodes_[index].children) {
      const Node& one = nodes_[at];
      if (!one.exists) continue;
      const size_t length = path.size();
      path += "/" + name;
      if (one.type == formats::TarType::directory)
        walk(at, path, visit);
      else if (one.type == formats::TarType::file)
        visit(path, one);
      path.resize(length);
    }
  }

  std::deque<Node> nodes_;
  std::vector<HiddenFile> hidden_;
  std::vector<std::string> problems_;
};

}  // namespace cufit::facts
