// SPDX-License-Identifier: Apache-2.0
// A container image as a Host: the probes that read a machine read the image's files and variables.
// There is no kernel, no device and no process behind it.
#pragma once

#include "host/files/host.h"
#include "facts/image_tree.h"

namespace cufit::host {

class ImageHost final : public Host {
 public:
  // The tree must outlive it. architecture: "x86_64"; told as the kernel that would run it tells
  // it, in /proc/sys/kernel/arch. Empty = not known.
  ImageHost(const facts::ImageTree& tree,
            std::vector<std::pair<std::string, std::string>> variables, std::string architecture);
  Result<std::string> read_file(const std::string& path, size_t limit) const override;
  Result<std::string> read_head(const std::string& path, size_t size) const override;
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<FileStatus> status(const std::string& path) const override;
  Result<std::string> read_link(const std::string& path) const override;
  Result<std::string> real_path(const std::string& path) const override;
  bool may_read_write(const std::string& path) const override;
  Result<uint64_t> filesystem_bytes(const std::string& path) const override;
  Result<std::string> kernel_log(size_t limit) const override;
  std::optional<std::string> variable(std::string_view name) const override;
  std::vector<std::pair<std::string, std::string>> variables() const override;

 private:
  Result<std::shared_ptr<const ByteSource>> content(const std::string& path) const;
  const facts::ImageTree& tree_;
  std::map<std::string, std::string> variables_;
  std::string architecture_;
};

}  // namespace cufit::host
