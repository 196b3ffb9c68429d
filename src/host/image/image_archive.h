// SPDX-License-Identifier: Apache-2.0
// The members of a saved image: a tar archive, plain or compressed as a whole, or a folder. Used by
// image_store only, which knows what the members mean.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/files/host.h"
#include "host/image/image_layer.h"

namespace cufit::host {

// What is read now, done and total bytes; total 0 = not known.
using ImageProgress = std::function<void(const std::string& what, uint64_t done, uint64_t total)>;

class ImageArchive {
 public:
  ImageArchive(const Host& host, std::string path, ImageProgress progress);

  Result<bool> open();
  bool has(const std::string& name) const;
  bool is_folder() const { return folder_; }
  bool is_compressed() const { return compressed_; }
  // A description: JSON of at most 16 MiB.
  Result<std::string> text(const std::string& name) const;
  // The layers named, in that order. Each is read once; equal names may come twice.
  Result<std::vector<facts::ImageLayer>> layers(const std::vector<std::string>& names,
                                                std::vector<std::string>& problems);
  // "`NAME` in `PATH`", for messages.
  std::string inside(const std::string& name) const;

 private:
  struct Member {
    formats::TarType type = formats::TarType::other;
    uint64_t offset = 0, size_bytes = 0;
    std::string link, text;  // text: of small members of a compressed archive
  };
  using Layers = std::map<std::string, facts::ImageLayer>;

  Result<bool> verify(const std::string& name, facts::ImageLayer& layer) const;
  Error missing(const std::string& name) const;
  Result<const Member*> find(std::string name) const;
  Result<uint64_t> size_of(const std::string& name) const;
  Result<std::shared_ptr<const ByteSource>> member_source(const std::string& name) const;
  Result<bool> list_members();
  Result<bool> list_entries(formats::TarReader& tar);
  // A compressed archive is expanded a second time; its layers are read as they pass.
  Result<bool> pass(const std::vector<std::string>& names, uint64_t total, Layers& read,
                    std::vector<std::string>& problems);

  const Host& host_;
  std::string path_;
  ImageProgress progress_;
  bool folder_ = false, compressed_ = false;
  std::shared_ptr<const ByteSource> archive_;
  std::map<std::string, Member> members_;
  uint64_t held_ = 0;  // bytes of compressed layers in memory
};

}  // namespace cufit::host
