// SPDX-License-Identifier: Apache-2.0
// Bytes of an image: a part of an archive at its place, the pages of a file that were kept, a file
// that notes which of its pages were read, a plain layer as a stream. Used by image_layer and
// image_archive only.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/format.h"
#include "base/sha256.h"

namespace cufit::host {

constexpr uint64_t k_page = 4096;

// Part of a source that stays open.
class RangeSource final : public ByteSource {
 public:
  RangeSource(std::string name, std::shared_ptr<const ByteSource> from, uint64_t offset,
              uint64_t size)
      : name_(std::move(name)), from_(std::move(from)), offset_(offset), size_(size) {}
  uint64_t size_bytes() const override { return size_; }
  const std::string& name() const override { return name_; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= size_) return size_t{0};
    return from_->read(
        offset_ + offset,
        out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size_ - offset))));
  }

 private:
  std::string name_;
  std::shared_ptr<const ByteSource> from_;
  uint64_t offset_, size_;
};

// The pages of a file that were kept; anything else of it is an error, never zeros.
class PageSource final : public ByteSource {
 public:
  PageSource(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}
  uint64_t size_bytes() const override { return size_; }
  const std::string& name() const override { return name_; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= size_) return size_t{0};
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(out.size(), size_ - offset));
    size_t done = 0;
    while (done < wanted) {
      const auto page = pages_.find((offset + done) / k_page);
      if (page == pages_.end()) {
        if (done > 0) return done;  // a reader's buffer may reach over what it needs
        return fail(Code::unsupported,
                    format("`{}`: byte {} was not kept while its layer was read", name_, offset));
      }
      const size_t in_page = static_cast<size_t>((offset + done) % k_page);
      const size_t part = std::min(wanted - done, page->second.size() - in_page);
      std::memcpy(out.data() + done, page->second.data() + in_page, part);
      done += part;
    }
    return done;
  }
  void keep(uint64_t page, std::string bytes) { pages_[page] = std::move(bytes); }

 private:
  std::string name_;
  uint64_t size_;
  std::map<uint64_t, std::string> pages_;
};

// A whole file in memory that remembers which of its pages somebody read.
class NotedSource final : public ByteSource {
 public:
  NotedSource(std::string name, std::string bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)), read_(bytes_.size() / k_page + 1) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= bytes_.size()) return size_t{0};
    const size_t size = static_cast<size_t>(std::min<uint64_t>(out.size(), bytes_.size() - offset));
    if (size == 0) return size;
    std::memcpy(out.data(), bytes_.data() + offset, size);
    for (uint64_t page = offset / k_page; page <= (offset + size - 1) / k_page; ++page)
      read_[static_cast<size_t>(page)] = true;
    return size;
  }
  void note(uint64_t offset, uint64_t size) {
    if (size == 0 || offset >= bytes_.size()) return;
    const uint64_t last = std::min<uint64_t>(offset + size, bytes_.size()) - 1;
    for (uint64_t page = offset / k_page; page <= last / k_page; ++page)
      read_[static_cast<size_t>(page)] = true;
  }
  uint64_t noted_bytes() const {
    return static_cast<uint64_t>(std::count(read_.begin(), read_.end(), true)) * k_page;
  }
  std::shared_ptr<const PageSource> kept(uint64_t& bytes) const {
    auto out = std::make_shared<PageSource>(name_, bytes_.size());
    for (size_t page = 0; page < read_.size(); ++page) {
      if (!read_[page] || page * k_page >= bytes_.size()) continue;
      out->keep(page, bytes_.substr(page * k_page, k_page));
      bytes += k_page;
    }
    return out;
  }

 private:
  std::string name_, bytes_;
  mutable std::vector<bool> read_;
};

// A plain source as a stream that can jump.
class SourceStream final : public ByteStream {
 public:
  explicit SourceStream(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}
  const std::string& name() const override { return source_->name(); }
  Result<size_t> read(std::span<std::byte> out) override {
    Result<size_t> got = source_->read(at_, out);
    if (got) at_ += *got;
    return got;
  }
  Result<bool> jump(uint64_t size) {
    if (size > source_->size_bytes() - std::min(at_, source_->size_bytes())) return false;
    at_ += size;
    return true;
  }
  uint64_t at() const { return at_; }

 private:
  std::shared_ptr<const ByteSource> source_;
  uint64_t at_ = 0;
};

constexpr uint64_t k_most_hashed = 64u << 20;  // bytes of a layer whose digest is taken

// The furthest byte that was read: how much of a compressed layer is behind. Bytes that come one
// after the other are hashed, of small layers: summing gigabytes takes longer than expanding them
// (107 MB/s by Mbed TLS on one core), and gzip's own checksum covers them.
class CountedSource final : public ByteSource {
 public:
  explicit CountedSource(std::shared_ptr<const ByteSource> from) : from_(std::move(from)) {}
  uint64_t size_bytes() const override { return from_->size_bytes(); }
  const std::string& name() const override { return from_->name(); }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    Result<size_t> got = from_->read(offset, out);
    if (!got) return got;
    if (offset == hashed_ && size_bytes() <= k_most_hashed) {
      sum_.add({reinterpret_cast<const char*>(out.data()), *got});
      hashed_ += *got;
    }
    done_ = std::max<uint64_t>(done_, offset + *got);
    return got;
  }
  uint64_t done() const { return done_; }
  // Once, at the end; empty where not every byte was read.
  std::string sha256() const { return hashed_ == size_bytes() ? sum_.hex() : std::string(); }

 private:
  std::shared_ptr<const ByteSource> from_;
  mutable Sha256 sum_;
  mutable uint64_t done_ = 0, hashed_ = 0;
};

}  // namespace cufit::host
