// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_archive.h"

#include <algorithm>

#include "base/format.h"
#include "formats/archive/compressed_input.h"
#include "formats/prose/printable.h"
#include "host/image/image_sources.h"

namespace cufit::host {
namespace {

using formats::TarType;

constexpr uint64_t k_json_bytes = 16u << 20;

// What a member of the archive is called, without "./" before it.
std::string member_name(std::string_view name) {
  while (starts_with(name, "./")) name.remove_prefix(2);
  return std::string(name);
}

// "b/layer.tar" of the link "../b/layer.tar" in "a/layer.tar": older docker stores equal layers
// once.
std::string linked_name(const std::string& from, const std::string& link) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(from, '/')) parts.emplace_back(part);
  if (!parts.empty()) parts.pop_back();
  for (const std::string_view part : split(link, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return join(parts, "/");
}

// A member of a compressed archive while it passes: only the next byte can be read.
class PassingSource final : public ByteSource {
 public:
  PassingSource(std::string name, formats::TarReader& tar, uint64_t size)
      : name_(std::move(name)), tar_(tar), size_(size) {}
  uint64_t size_bytes() const override { return size_; }
  const std::string& name() const override { return name_; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset != at_ && offset < size_)
      return fail(Code::unsupported, format("{}: cannot go back to byte {}", name_, offset));
    size_t done = 0;
    while (done < out.size()) {
      CUFIT_TRY(got, tar_.read(out.subspan(done)));
      if (got == 0) break;
      done += got;
    }
    at_ += done;
    return done;
  }

 private:
  std::string name_;
  formats::TarReader& tar_;
  uint64_t size_;
  mutable uint64_t at_ = 0;
};

// Descriptions of images are JSON; the other small members are layers.
Result<std::string> small_text(uint64_t size, formats::TarReader& tar) {
  std::string text(static_cast<size_t>(std::min<uint64_t>(size, 1)), '\0');
  CUFIT_TRY(got, tar.read(std::as_writable_bytes(std::span(text))));
  if (got == 0 || (text[0] != '{' && text[0] != '[')) return std::string();
  text.resize(static_cast<size_t>(size));
  size_t done = 1;
  while (done < text.size()) {
    CUFIT_TRY(more, tar.read(std::as_writable_bytes(std::span(text)).subspan(done)));
    if (more == 0) break;
    done += more;
  }
  text.resize(done);
  return text;
}

formats::ExpandLimits archive_limits() {
  formats::ExpandLimits limits;
  limits.total_bytes = 1ull << 40;
  limits.ratio = 20'000;  // images hold files of zeros; the total is what bounds them
  return limits;
}

}  // namespace

ImageArchive::ImageArchive(const Host& host, std::string path, ImageProgress progress)
    : host_(host), path_(std::move(path)), progress_(std::move(progress)) {}

Result<bool> ImageArchive::open() {
  CUFIT_TRY(status, host_.status(path_));
  folder_ = status.is_directory;
  if (folder_) {
    if (host_.exists(path_ + "/index.json")) return true;
    return fail(Code::malformed,
                format("`{}`: a folder without index.json is no image in OCI layout", path_));
  }
  CUFIT_TRY(source, host_.open(path_));
  archive_ = std::move(source);
  return list_members();
}

bool ImageArchive::has(const std::string& name) const {
  return folder_ ? host_.exists(path_ + "/" + name) : members_.count(name) != 0;
}

std::string ImageArchive::inside(const std::string& name) const {
  return format("`{}` in `{}`", formats::printable(name, 200), path_);
}

Result<std::string> ImageArchive::text(const std::string& name) const {
  if (folder_) {
    Result<std::string> text = host_.read_file(path_ + "/" + name, k_json_bytes);
    if (!text && text.error().code == Code::not_found) return missing(name);
    return text;
  }
  CUFIT_TRY(member, find(name));
  if (member->size_bytes > k_json_bytes)
    return fail(Code::malformed, format("{}: {} bytes are no description of an image", inside(name),
                                        member->size_bytes));
  if (compressed_) return member->text;
  return archive_->read_exact(member->offset, member->size_bytes, k_json_bytes);
}

Result<std::vector<facts::ImageLayer>> ImageArchive::layers(const std::vector<std::string>& names,
                                                            std::vector<std::string>& problems) {
  Layers read;
  uint64_t total = 0, before = 0;
  for (const std::string& name : names) {
    CUFIT_TRY(size, size_of(name));
    total += size;
  }
  if (compressed_) {
    CUFIT_TRY(passed, pass(names, total, read, problems));
    (void)passed;
  }
  for (const std::string& name : names) {
    if (read.count(name) != 0) continue;
    CUFIT_TRY(source, member_source(name));
    const uint64_t size = source->size_bytes();
    const auto progress = [&](uint64_t done) {
      if (progress_) progress_(path_, std::min(before + done, total), total);
    };
    Result<facts::ImageLayer> layer =
        read_layer(std::move(source), true, progress, problems, held_);
    if (!layer) return layer.error();
    CUFIT_TRY(same, verify(name, *layer));
    (void)same;
    read.emplace(name, std::move(*layer));
    before += size;
  }
  std::vector<facts::ImageLayer> out;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool again =
        std::find(names.begin() + static_cast<long>(i) + 1, names.end(), names[i]) != names.end();
    facts::ImageLayer& layer = read.at(names[i]);
    if (again)
      out.push_back(layer);
    else
      out.push_back(std::move(layer));
    out.back().name = names[i];
  }
  return out;
}

// A blob is called by the sum of its bytes; of a plain layer most of them are never read.
Result<bool> ImageArchive::verify(const std::string& name, facts::ImageLayer& layer) const {
  constexpr std::string_view k_blobs = "blobs/sha256/";
  if (layer.sha256.empty() || !starts_with(name, k_blobs)) return true;
  layer.verified = layer.sha256 == name.substr(k_blobs.size());
  if (layer.verified) return true;
  return fail(Code::malformed, format("{}: its bytes do not have the digest that names it: the "
                                      "image is damaged",
                                      inside(name)));
}

Error ImageArchive::missing(const std::string& name) const {
  return fail(Code::malformed,
              format("{}: missing; the image is incomplete or was cut off", inside(name)));
}

Result<const ImageArchive::Member*> ImageArchive::find(std::string name) const {
  for (int i = 0; i < 8; ++i) {
    const auto found = members_.find(name);
    if (found == members_.end()) return missing(name);
    const Member& member = found->second;
    if (member.type == TarType::file) return &member;
    if (member.type == TarType::symlink)
      name = linked_name(name, member.link);
    else if (member.type == TarType::hardlink)
      name = member_name(member.link);
    else
      break;
  }
  return missing(name);
}

Result<uint64_t> ImageArchive::size_of(const std::string& name) const {
  if (folder_) {
    const Result<FileStatus> status = host_.status(path_ + "/" + name);
    if (!status) return missing(name);
    return status->size_bytes;
  }
  CUFIT_TRY(member, find(name));
  return member->size_bytes;
}

Result<std::shared_ptr<const ByteSource>> ImageArchive::member_source(
    const std::string& name) const {
  if (folder_) {
    Result<std::unique_ptr<ByteSource>> source = host_.open(path_ + "/" + name);
    if (!source) return source.error().code == Code::not_found ? missing(name) : source.error();
    const uint64_t size = (*source)->size_bytes();
    return std::shared_ptr<const ByteSource>(
        std::make_shared<RangeSource>(inside(name), std::move(*source), 0, size));
  }
  CUFIT_TRY(member, find(name));
  return std::shared_ptr<const ByteSource>(
      std::make_shared<RangeSource>(inside(name), archive_, member->offset, member->size_bytes));
}

Result<bool> ImageArchive::list_members() {
  CUFIT_TRY(input, formats::CompressedInput::open(archive_, archive_limits()));
  compressed_ = input.compression() != formats::Compression::none;
  if (compressed_) {
    formats::TarReader tar(input);
    CUFIT_TRY(listed, list_entries(tar));
    (void)listed;
    std::vector<std::byte> piece(64u << 10);
    while (true) {  // checksums stand behind the end of the tar archive
      CUFIT_TRY(got, input.read(piece));
      if (got == 0) return true;
    }
  }
  std::string first(512, '\0');
  CUFIT_TRY(got, archive_->read(0, std::as_writable_bytes(std::span(first))));
  first.resize(got);
  if (!formats::is_tar(first))
    return fail(Code::malformed,
                format("`{}`: neither a tar archive nor a folder: no saved image", path_));
  SourceStream stream(archive_);
  formats::TarReader tar(stream, {}, [&stream](uint64_t size) { return stream.jump(size); });
  return list_entries(tar);
}

Result<bool> ImageArchive::list_entries(formats::TarReader& tar) {
  while (true) {
    CUFIT_TRY(entry, tar.next());
    if (!entry) return true;
    Member member{entry->type, entry->offset, entry->size_bytes, entry->link, ""};
    if (compressed_ && entry->type == TarType::file && entry->size_bytes < k_json_bytes / 4) {
      CUFIT_TRY(text, small_text(entry->size_bytes, tar));
      member.text = std::move(text);
    }
    if (compressed_ && progress_) progress_(path_, tar.position(), 0);
    members_[member_name(entry->path)] = std::move(member);
  }
}

Result<bool> ImageArchive::pass(const std::vector<std::string>& names, uint64_t total, Layers& read,
                                std::vector<std::string>& problems) {
  std::map<const Member*, std::vector<std::string>> wanted;
  for (const std::string& name : names) {
    CUFIT_TRY(member, find(name));
    wanted[member].push_back(name);
  }
  CUFIT_TRY(input, formats::CompressedInput::open(archive_, archive_limits()));
  formats::TarReader tar(input);
  uint64_t before = 0;
  while (true) {
    CUFIT_TRY(entry, tar.next());
    if (!entry) break;
    const auto found = members_.find(member_name(entry->path));
    const auto asked = found == members_.end() ? wanted.end() : wanted.find(&found->second);
    if (asked == wanted.end() || entry->offset != found->second.offset) continue;
    const std::string& name = asked->second.front();
    const auto source = std::make_shared<PassingSource>(inside(name), tar, entry->size_bytes);
    const auto progress = [&](uint64_t done) {
      if (progress_) progress_(path_, std::min(before + done, total), total);
    };
    Result<facts::ImageLayer> layer = read_layer(source, false, progress, problems, held_);
    if (!layer) return layer.error();
    for (const std::string& each : asked->second) {
      CUFIT_TRY(same, verify(each, *layer));
      (void)same;
    }
    for (const std::string& each : asked->second) read.emplace(each, *layer);
    before += entry->size_bytes;
  }
  for (const std::string& name : names)
    if (read.count(name) == 0) return missing(name);
  return true;
}

}  // namespace cufit::host
