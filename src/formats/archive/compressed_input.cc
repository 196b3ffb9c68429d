// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/compressed_input.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_piece = 128u << 10;  // of the compressed file

enum class Step { more, end_of_member };

}  // namespace

const char* to_string(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "none";
    case Compression::gzip:
      return "gzip";
    case Compression::zstd:
      return "zstd";
  }
  return "?";
}

struct CompressedInput::State {
  State(std::shared_ptr<const ByteSource> from, const ExpandLimits& bounds)
      : source(std::move(from)), limits(bounds) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (gzip_ready) inflateEnd(&gzip);
    if (zstd) ZSTD_freeDStream(zstd);
  }

  std::shared_ptr<const ByteSource> source;
  ExpandLimits limits;
  Compression compression = Compression::none;
  std::vector<std::byte> piece;
  size_t at = 0, end = 0;  // what is left of the piece
  uint64_t offset = 0;     // of the next piece in the file
  uint64_t expanded = 0;
  bool in_member = false;  // the data may end only between members
  bool members_seen = false;
  z_stream gzip{};
  bool gzip_ready = false;
  ZSTD_DStream* zstd = nullptr;

  uint64_t position() const { return offset - (end - at); }

  Error broken(std::string_view what) const {
    return fail(Code::malformed, format("{}: damaged {} data at byte {}: {}", source->name(),
                                        to_string(compression), position(), what));
  }

  Error not_read(std::string_view kind) const {
    return fail(Code::unsupported,
                format("{}: compressed by {}, which cufit does not read", source->name(), kind));
  }

  Result<bool> fill() {  // false at the end of the file
    Result<size_t> got = source->read(offset, piece);
    if (!got) return got.error();
    at = 0;
    end = *got;
    offset += end;
    return end > 0;
  }

  Result<bool> start() {
    piece.resize(k_piece);
    CUFIT_TRY(any, fill());
    (void)any;
    auto byte = [&](size_t i) { return i < end ? static_cast<unsigned>(piece[i]) : 0x100u; };
    if (byte(0) == 0x1f && byte(1) == 0x8b) {
      compression = Compression::gzip;
      gzip_ready = inflateInit2(&gzip, 15 + 16) == Z_OK;  // window of 32 KiB, gzip header
      if (!gzip_ready) return fail(Code::io, "zlib did not start");
    } else if (byte(0) == 'B' && byte(1) == 'Z' && byte(2) == 'h' && byte(3) >= '1' &&
               byte(3) <= '9' && byte(4) == 0x31 && byte(5) == 0x41) {
      return not_read("bzip2");
    } else if (byte(0) == 0xfd && byte(1) == '7' && byte(2) == 'z' && byte(3) == 'X' &&
               byte(4) == 'Z' && byte(5) == 0) {
      return not_read("xz");
    } else if ((byte(0) == 0x28 && byte(1) == 0xb5 && byte(2) == 0x2f && byte(3) == 0xfd) ||
               ((byte(0) & 0x1f0u) == 0x50 && byte(1) == 0x2a && byte(2) == 0x4d &&
                byte(3) == 0x18)) {  // a skippable frame may come first; the library passes over it
      compression = Compression::zstd;
      zstd = ZSTD_createDStream();
      if (!zstd) return fail(Code::io, "zstd did not start");
    }
    return true;
  }

  // zstd's windows are bounded by the library: 128 MiB unless asked for more.
  Result<Step> step(std::byte* out, size_t size, size_t& produced) {
    if (compression == Compression::gzip) {
      gzip.next_in = reinterpret_cast<Bytef*>(piece.data() + at);
      gzip.avail_in = static_cast<uInt>(end - at);
      gzip.next_out = reinterpret_cast<Bytef*>(out);
      gzip.avail_out = static_cast<uInt>(size);
      int status = inflate(&gzip, Z_NO_FLUSH);
      at = end - gzip.avail_in;
      produced = size - gzip.avail_out;
      if (status == Z_STREAM_END) {
        inflateReset(&gzip);
        return Step::end_of_member;
      }
      if (status == Z_OK || status == Z_BUF_ERROR) return Step::more;
      return broken(gzip.msg ? gzip.msg : "zlib cannot go on");
    }
    ZSTD_inBuffer in{piece.data(), end, at};
    ZSTD_outBuffer to{out, size, 0};
    size_t status = ZSTD_decompressStream(zstd, &to, &in);
    at = in.pos;
    produced = to.pos;
    if (ZSTD_isError(status)) return broken(ZSTD_getErrorName(status));
    return status == 0 ? Step::end_of_member : Step::more;
  }

  // What stands between members: zeros are padding (tapes, `gzip` ignores them as well).
  bool only_padding_left() const {
    return compression == Compression::gzip && members_seen && piece[at] == std::byte{0};
  }

  Result<size_t> expand(std::span<std::byte> out) {
    size_t done = 0;
    while (done < out.size()) {
      if (at == end) {
        CUFIT_TRY(any, fill());
        if (!any) {
          if (!in_member) break;
          // The decoder may still hold output that did not fit before.
          size_t produced = 0;
          CUFIT_TRY(last, step(out.data() + done, out.size() - done, produced));
          done += produced;
          if (last == Step::end_of_member) in_member = false;
          if (produced > 0) continue;
          if (done > 0)
            break;  // hand out what there is; the next call says that the rest is missing
          return broken("the file ends before the data does");
        }
      }
      if (!in_member && only_padding_left()) {
        at = end;
        continue;
      }
      size_t produced = 0;
      size_t before = at;
      CUFIT_TRY(result,
                step(out.data() + done, std::min<size_t>(out.size() - done, 1u << 30), produced));
      done += produced;
      in_member = result == Step::more;
      if (!in_member) members_seen = true;
      if (produced == 0 && at == before && result == Step::more) return broken("no progress");
    }
    expanded += done;
    return done;
  }
};

CompressedInput::CompressedInput(std::unique_ptr<State> state) : state_(std::move(state)) {}
CompressedInput::CompressedInput(CompressedInput&&) noexcept = default;
CompressedInput& CompressedInput::operator=(CompressedInput&&) noexcept = default;
CompressedInput::~CompressedInput() = default;

Result<CompressedInput> CompressedInput::open(std::shared_ptr<const ByteSource> source,
                                              const ExpandLimits& limits) {
  auto state = std::make_unique<State>(std::move(source), limits);
  CUFIT_TRY(started, state->start());
  (void)started;
  return CompressedInput(std::move(state));
}

Compression CompressedInput::compression() const { return state_->compression; }
const std::string& CompressedInput::name() const { return state_->source->name(); }

Result<size_t> CompressedInput::read(std::span<std::byte> out) {
  State& s = *state_;
  if (s.compression == Compression::none) {
    if (s.at == s.end) {
      if (out.size() >= k_piece) {  // no need to copy through the piece
        Result<size_t> got = s.source->read(s.offset, out);
        if (got) s.offset += *got;
        return got;
      }
      CUFIT_TRY(any, s.fill());
      if (!any) return size_t{0};
    }
    size_t size = std::min(out.size(), s.end - s.at);
    std::memcpy(out.data(), s.piece.data() + s.at, size);
    s.at += size;
    return size;
  }
  CUFIT_TRY(done, s.expand(out));
  uint64_t compressed = std::max<uint64_t>(s.position(), 1);
  if (s.expanded > s.limits.total_bytes ||
      (s.expanded > s.limits.ratio_from && s.expanded / compressed > s.limits.ratio)) {
    return fail(
        Code::malformed,
        format("{}: {} data expands to more than {} from {}; no real data does", name(),
               to_string(s.compression), format_bytes(s.expanded), format_bytes(compressed)));
  }
  return done;
}

}  // namespace cufit::formats
