// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_host.h"

#include <sys/stat.h>

#include "base/format.h"

namespace cufit::host {
namespace {

using formats::TarType;

Error not_found(const std::string& path) {
  return fail(Code::not_found, format("`{}`: No such file or directory", path));
}
Error no_machine(const std::string& what) {
  return fail(Code::unsupported, format("{}: an image has none", what));
}

// The tree's content under another owner: probes hold a source for as long as they like.
class SharedSource final : public ByteSource {
 public:
  SharedSource(std::string name, std::shared_ptr<const ByteSource> from)
      : name_(std::move(name)), from_(std::move(from)) {}
  uint64_t size_bytes() const override { return from_->size_bytes(); }
  const std::string& name() const override { return name_; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    return from_->read(offset, out);
  }

 private:
  std::string name_;
  std::shared_ptr<const ByteSource> from_;
};

}  // namespace

ImageHost::ImageHost(const facts::ImageTree& tree,
                     std::vector<std::pair<std::string, std::string>> variables,
                     std::string architecture)
    : tree_(tree), architecture_(std::move(architecture)) {
  for (auto& [name, value] : variables) variables_[name] = std::move(value);
}

Result<std::shared_ptr<const ByteSource>> ImageHost::content(const std::string& path) const {
  std::string real = path;
  const facts::ImageTree::Node* node = tree_.find(real);
  if (node == nullptr) return not_found(path);
  if (node->type == TarType::directory)
    return fail(Code::unsupported, format("`{}`: Is a directory", path));
  if (node->type != TarType::file)
    return fail(Code::unsupported, format("`{}`: not a regular file", path));
  if (node->file.content == nullptr)
    return fail(Code::unsupported,
                format("`{}`: its contents were not kept while the image was read", path));
  return node->file.content;
}

Result<std::string> ImageHost::read_file(const std::string& path, size_t limit) const {
  if (path == "/proc/sys/kernel/arch" && !architecture_.empty()) return architecture_ + "\n";
  CUFIT_TRY(source, content(path));
  if (source->size_bytes() > limit)
    return fail(Code::unsupported, format("`{}`: {} bytes are over the limit of {}", path,
                                          source->size_bytes(), limit));
  return source->read_exact(0, source->size_bytes(), limit);
}

Result<std::string> ImageHost::read_head(const std::string& path, size_t size) const {
  if (path == "/proc/sys/kernel/arch" && !architecture_.empty())
    return (architecture_ + "\n").substr(0, size);
  CUFIT_TRY(source, content(path));
  std::string out(size, '\0');
  CUFIT_TRY(got, source->read(0, std::as_writable_bytes(std::span(out))));
  out.resize(got);
  return out;
}

Result<std::unique_ptr<ByteSource>> ImageHost::open(const std::string& path) const {
  CUFIT_TRY(source, content(path));
  return std::unique_ptr<ByteSource>(std::make_unique<SharedSource>(path, std::move(source)));
}

Result<std::vector<std::string>> ImageHost::list(const std::string& path) const {
  std::string real = path;
  const facts::ImageTree::Node* node = tree_.find(real);
  if (node == nullptr) return not_found(path);
  if (node->type != TarType::directory)
    return fail(Code::not_found, format("`{}`: Not a directory", path));
  std::vector<std::string> out;
  for (const auto& [name, index] : node->children)
    if (tree_.node(index).exists) out.push_back(name);
  return out;
}

Result<FileStatus> ImageHost::status(const std::string& path) const {
  std::string real = path;
  const facts::ImageTree::Node* node = tree_.find(real);
  if (node == nullptr || node->type == TarType::symlink) return not_found(path);
  FileStatus out;
  out.is_directory = node->type == TarType::directory;
  out.is_regular = node->type == TarType::file;
  out.is_character_device = node->type == TarType::character_device;
  out.size_bytes = node->file.size_bytes;
  out.mode = node->file.mode | (out.is_directory ? S_IFDIR : out.is_regular ? S_IFREG : 0u);
  out.device_major = node->file.device_major;
  out.device_minor = node->file.device_minor;
  return out;
}

Result<std::string> ImageHost::read_link(const std::string& path) const {
  std::string real = path;
  const facts::ImageTree::Node* node = tree_.find(real, false);
  if (node == nullptr) return not_found(path);
  if (node->type != TarType::symlink)
    return fail(Code::unsupported, format("`{}`: Invalid argument", path));
  return node->file.link;
}

Result<std::string> ImageHost::real_path(const std::string& path) const {
  std::string real = path;
  if (tree_.find(real) == nullptr) return not_found(path);
  return real;
}

bool ImageHost::may_read_write(const std::string&) const { return false; }

Result<uint64_t> ImageHost::filesystem_bytes(const std::string& path) const {
  return no_machine(format("`{}`: file system", path));
}

Result<std::string> ImageHost::kernel_log(size_t) const { return no_machine("kernel log"); }

std::optional<std::string> ImageHost::variable(std::string_view name) const {
  const auto found = variables_.find(std::string(name));
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::pair<std::string, std::string>> ImageHost::variables() const {
  return {variables_.begin(), variables_.end()};
}

}  // namespace cufit::host
