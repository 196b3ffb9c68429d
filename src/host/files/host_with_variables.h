// SPDX-License-Identifier: Apache-2.0
// A machine as a program sees it that is started with other variables.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "host/files/host.h"

namespace cufit::host {

class HostWithVariables final : public Host {
 public:
  HostWithVariables(const Host& host, std::map<std::string, std::string> changed)
      : host_(host), changed_(std::move(changed)) {}
  Result<std::string> read_file(const std::string& path, size_t limit) const override {
    return host_.read_file(path, limit);
  }
  Result<std::string> read_head(const std::string& path, size_t size) const override {
    return host_.read_head(path, size);
  }
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override {
    return host_.open(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    return host_.list(path);
  }
  Result<FileStatus> status(const std::string& path) const override { return host_.status(path); }
  Result<std::string> read_link(const std::string& path) const override {
    return host_.read_link(path);
  }
  Result<std::string> real_path(const std::string& path) const override {
    return host_.real_path(path);
  }
  bool may_read_write(const std::string& path) const override { return host_.may_read_write(path); }
  Result<std::string> socket_place(const std::string& path) const override {
    return host_.socket_place(path);
  }
  Result<uint64_t> filesystem_bytes(const std::string& path) const override {
    return host_.filesystem_bytes(path);
  }
  Result<uint64_t> filesystem_free_bytes(const std::string& path) const override {
    return host_.filesystem_free_bytes(path);
  }
  Result<std::string> kernel_log(size_t limit) const override { return host_.kernel_log(limit); }
  std::optional<std::string> variable(std::string_view name) const override {
    const auto at = changed_.find(std::string(name));
    return at != changed_.end() ? std::optional<std::string>(at->second) : host_.variable(name);
  }
  std::vector<std::pair<std::string, std::string>> variables() const override {
    std::map<std::string, std::string> all = changed_;
    for (auto& [name, value] : host_.variables()) all.emplace(name, value);
    return {all.begin(), all.end()};
  }
  std::string hypervisor_signature() const override { return host_.hypervisor_signature(); }

 private:
  const Host& host_;
  std::map<std::string, std::string> changed_;
};

}  // namespace cufit::host
