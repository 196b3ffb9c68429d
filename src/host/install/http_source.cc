// SPDX-License-Identifier: Apache-2.0
#include "host/install/http_source.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "formats/python/index_config.h"
#include "host/install/http.h"

namespace cufit::host {
namespace {

constexpr uint64_t k_tail_bytes = 128u << 10;  // the directory of most wheels
constexpr uint64_t k_first_block = 64u << 10, k_largest_block = 4u << 20;

struct RangeAnswer {
  uint64_t first = 0, total = 0;
  std::string bytes, etag, url;
};

// "bytes 100-199/1234"
bool take_content_range(std::string_view text, RangeAnswer& out) {
  if (!starts_with(text, "bytes ")) return false;
  text.remove_prefix(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return false;
  const auto first = parse_uint(text.substr(0, dash));
  const auto last = parse_uint(text.substr(dash + 1, slash - dash - 1));
  const auto total = parse_uint(text.substr(slash + 1));
  if (!first || !last || !total || *last < *first || *last >= *total) return false;
  out.first = *first;
  out.total = *total;
  return out.bytes.size() == *last - *first + 1;
}

Result<RangeAnswer> get_range(const std::string& url, const std::string& range, uint64_t size,
                              double stall_seconds, Interrupts& interrupts) {
  HttpRequest request;
  request.url = url;
  request.range = range;
  request.most_bytes = size;
  request.stall_seconds = stall_seconds;
  const std::string shown = formats::without_credentials(url);
  Result<HttpAnswer> answer = http_get(request, interrupts);
  const auto no_ranges = [&] {
    return fail(Code::unsupported,
                format("`{}`: the server answers no ranges; download the file and name it", shown));
  };
  // Of a server that sends the whole file.
  if (!answer) return answer.error().code == Code::malformed ? no_ranges() : answer.error();
  if (answer->status == 404 || answer->status == 410)
    return fail(Code::not_found, format("`{}`: not there", shown));
  if (answer->status == 200) return no_ranges();
  if (answer->status != 206)
    return fail(answer->status == 401 || answer->status == 403 ? Code::no_permission : Code::io,
                format("`{}` answers HTTP {}", shown, answer->status));
  RangeAnswer out;
  out.bytes = std::move(answer->body);
  out.etag = std::move(answer->etag);
  out.url = std::move(answer->url);
  if (!take_content_range(answer->content_range, out))
    return fail(Code::malformed,
                format("`{}`: `{}` is not what was asked for", shown, answer->content_range));
  return out;
}

class HttpSource final : public ByteSource {
 public:
  HttpSource(std::string url, Interrupts& interrupts, const HttpSourceOptions& options,
             RangeAnswer tail)
      : name_(formats::without_credentials(url)),
        url_(tail.url),
        etag_(tail.etag),
        size_(tail.total),
        fetched_(tail.bytes.size()),
        options_(options),
        interrupts_(interrupts) {
    blocks_[tail.first] = std::move(tail.bytes);
  }

  uint64_t size_bytes() const override { return size_; }
  const std::string& name() const override { return name_; }

  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    size_t done = 0;
    while (done < out.size() && offset + done < size_) {
      CUFIT_TRY(piece, at(offset + done));
      const size_t size = std::min(piece.size(), out.size() - done);
      std::memcpy(out.data() + done, piece.data(), size);
      done += size;
    }
    return done;
  }

 private:
  // What is there from `offset` on, at least one byte.
  Result<std::string_view> at(uint64_t offset) const {
    auto after = blocks_.upper_bound(offset);
    if (after != blocks_.begin()) {
      const auto& [first, bytes] = *std::prev(after);
      if (offset < first + bytes.size())
        return std::string_view(bytes).substr(static_cast<size_t>(offset - first));
    }
    // Who reads on gets more at once; who looks here and there, little.
    next_size_ = offset == next_offset_ ? std::min(next_size_ * 4, k_largest_block) : k_first_block;
    uint64_t end = std::min(size_, offset + next_size_);
    if (after != blocks_.end()) end = std::min(end, after->first);
    if (fetched_ + (end - offset) > options_.most_bytes)
      return fail(Code::unsupported, format("`{}`: more than {} MiB would have to be fetched",
                                            name_, options_.most_bytes >> 20));
    CUFIT_TRY(answer, get_range(url_, format("{}-{}", offset, end - 1), end - offset,
                                options_.stall_seconds, interrupts_));
    if (answer.total != size_ || answer.etag != etag_ || answer.first != offset)
      return fail(Code::malformed, format("`{}`: it changed while it was read", name_));
    // A server that answers in crumbs would cost a request for each.
    if (answer.bytes.size() != end - offset)
      return fail(Code::malformed,
                  format("`{}`: the server answers less than was asked for", name_));
    fetched_ += answer.bytes.size();
    next_offset_ = offset + answer.bytes.size();
    const auto kept = blocks_.emplace(offset, std::move(answer.bytes)).first;
    return std::string_view(kept->second);
  }

  const std::string name_, url_, etag_;
  const uint64_t size_;
  mutable uint64_t fetched_;
  const HttpSourceOptions options_;
  Interrupts& interrupts_;
  mutable std::map<uint64_t, std::string> blocks_;  // bounded by most_bytes
  mutable uint64_t next_offset_ = UINT64_MAX, next_size_ = k_first_block;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_http_source(const std::string& url, Interrupts& interrupts,
                                                     const HttpSourceOptions& options) {
  CUFIT_TRY(tail, get_range(url, format("-{}", k_tail_bytes), k_tail_bytes, options.stall_seconds,
                            interrupts));
  return std::unique_ptr<ByteSource>(
      std::make_unique<HttpSource>(url, interrupts, options, std::move(tail)));
}

}  // namespace cufit::host
