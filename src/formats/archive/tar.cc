// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/tar.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

constexpr size_t k_tar_block = 512;

// Octal text with blanks around, or base 256.
std::optional<uint64_t> number_at(std::string_view header, size_t at, size_t size) {
  std::string_view text = header.substr(at, size);
  const auto first = static_cast<unsigned char>(text[0]);
  if ((first & 0x80) != 0) {
    if ((first & 0x40) != 0) return std::nullopt;  // negative
    uint64_t value = first & 0x3f;
    for (size_t i = 1; i < text.size(); ++i) {
      if ((value >> 56) != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(text[i]);
    }
    return value;
  }
  text = text.substr(0, text.find('\0'));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7' || (value >> 61) != 0) return std::nullopt;
    value = value << 3 | static_cast<uint64_t>(c - '0');
  }
  return value;
}

std::string_view text_at(std::string_view header, size_t at, size_t size) {
  const std::string_view text = header.substr(at, size);
  return text.substr(0, text.find('\0'));
}

bool checksum_holds(std::string_view header) {
  const std::optional<uint64_t> said = number_at(header, 148, 8);
  uint64_t with_unsigned = 0;
  int64_t with_signed = 0;  // what some old programs summed
  for (size_t i = 0; i < k_tar_block; ++i) {
    const char c = i >= 148 && i < 156 ? ' ' : header[i];
    with_unsigned += static_cast<unsigned char>(c);
    with_signed += static_cast<signed char>(c);
  }
  return said && (*said == with_unsigned || static_cast<int64_t>(*said) == with_signed);
}

TarType type_of(char type) {
  switch (type) {
    case '\0':
    case '0':
    case '7':
      return TarType::file;
    case '1':
      return TarType::hardlink;
    case '2':
      return TarType::symlink;
    case '3':
      return TarType::character_device;
    case '5':
      return TarType::directory;
    default:
      return TarType::other;
  }
}

}  // namespace

bool is_tar(std::string_view first) {
  return first.size() >= k_tar_block && first[0] != '\0' &&
         checksum_holds(first.substr(0, k_tar_block));
}

TarReader::TarReader(ByteStream& stream, const TarLimits& limits,
                     std::function<Result<bool>(uint64_t)> jump)
    : stream_(stream), limits_(limits), jump_(std::move(jump)) {}

Error TarReader::broken(uint64_t at, const std::string& what) const {
  return fail(Code::malformed,
              format("{}: damaged tar archive at byte {}: {}", stream_.name(), at, what));
}

Result<bool> TarReader::fill(std::byte* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    CUFIT_TRY(got, stream_.read({out + done, size - done}));
    if (got == 0) break;
    done += got;
    position_ += got;
  }
  if (done == 0) return false;
  if (done < size) return broken(position_, "the archive ends before its contents do");
  return true;
}

Result<bool> TarReader::skip(uint64_t size) {
  if (size == 0) return true;
  if (jump_) {
    CUFIT_TRY(inside, jump_(size));
    if (!inside) return broken(position_, "the archive ends before its contents do");
    position_ += size;
    return true;
  }
  std::vector<std::byte> piece(static_cast<size_t>(std::min<uint64_t>(size, 256u << 10)));
  while (size > 0) {
    const size_t part = static_cast<size_t>(std::min<uint64_t>(size, piece.size()));
    CUFIT_TRY(any, fill(piece.data(), part));
    if (!any) return broken(position_, "the archive ends before its contents do");
    size -= part;
  }
  return true;
}

Result<std::string> TarReader::extension(uint64_t size) {
  if (size > limits_.extension_bytes)
    return broken(position_, format("an extension record of {} bytes", size));
  std::string text(static_cast<size_t>(size), '\0');
  if (size > 0) {
    CUFIT_TRY(any, fill(reinterpret_cast<std::byte*>(text.data()), text.size()));
    if (!any) return broken(position_, "the archive ends before its contents do");
  }
  CUFIT_TRY(padded, skip((k_tar_block - size % k_tar_block) % k_tar_block));
  (void)padded;
  return text;
}

// "30 path=some/long/name\n": the length counts itself and the line's end.
Result<bool> TarReader::apply_pax(const std::string& text, uint64_t at, bool global) {
  size_t here = 0;
  while (here < text.size() && text[here] != '\0') {
    const size_t blank = text.find(' ', here);
    const std::optional<uint64_t> length =
        blank == std::string::npos ? std::nullopt
                                   : parse_uint(std::string_view(text).substr(here, blank - here));
    if (!length || *length < blank - here + 3 || *length > text.size() - here ||
        text[here + *length - 1] != '\n')
      return broken(at + here, "a pax record of another length than it says");
    const std::string_view record =
        std::string_view(text).substr(blank + 1, here + *length - blank - 2);
    here += *length;
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return broken(at, "a pax record without `=`");
    const std::string_view key = record.substr(0, equals);
    const std::string value(record.substr(equals + 1));
    if (key == "path") (global ? all_path_ : path_) = value;
    if (key == "linkpath") (global ? all_link_ : link_) = value;
    if (key == "size" && !global) {
      size_ = parse_uint(value);
      if (!size_) return broken(at, "a pax size that is no number");
    }
  }
  return true;
}

// Header 'S' and each extension block say in one byte whether another follows.
Result<bool> TarReader::sparse_blocks(bool more) {
  std::array<std::byte, k_tar_block> block;
  while (more) {
    CUFIT_TRY(any, fill(block.data(), k_tar_block));
    if (!any) return broken(position_, "the archive ends before its contents do");
    more = block[504] != std::byte{0};
  }
  return true;
}

Result<std::optional<TarEntry>> TarReader::next() {
  CUFIT_TRY(skipped, skip(left_ + padding_));
  (void)skipped;
  left_ = padding_ = 0;
  std::array<char, k_tar_block> block;
  while (true) {
    const uint64_t at = position_;
    CUFIT_TRY(any, fill(reinterpret_cast<std::byte*>(block.data()), k_tar_block));
    if (!any) return std::optional<TarEntry>();
    const std::string_view header(block.data(), k_tar_block);
    if (header.find_first_not_of('\0') == std::string_view::npos) return std::optional<TarEntry>();
    if (!checksum_holds(header)) return broken(at, "no tar header (its checksum does not hold)");
    if (++entries_ > limits_.entries)
      return broken(at, format("more than {} entries", limits_.entries));
    std::optional<uint64_t> size = number_at(header, 124, 12);
    if (!size) return broken(at, "a size that is no number");
    const char type = header[156];
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
      CUFIT_TRY(text, extension(*size));
      if (type == 'x' || type == 'g') {
        CUFIT_TRY(applied, apply_pax(text, at + k_tar_block, type == 'g'));
        (void)applied;
      } else {
        (type == 'L' ? path_ : link_) = text.substr(0, text.find('\0'));
      }
      continue;
    }
    TarEntry entry;
    entry.type = type_of(type);
    entry.path = std::string(text_at(header, 0, 100));
    if (text_at(header, 257, 5) == "ustar" && header[262] == '\0' && header[345] != '\0')
      entry.path = std::string(text_at(header, 345, 155)) + "/" + entry.path;
    entry.link = std::string(text_at(header, 157, 100));
    if (path_ || all_path_) entry.path = path_ ? *path_ : *all_path_;
    if (link_ || all_link_) entry.link = link_ ? *link_ : *all_link_;
    if (size_) size = size_;
    path_ = link_ = std::nullopt;
    size_ = std::nullopt;
    if (entry.path.find('\0') != std::string::npos || entry.link.find('\0') != std::string::npos)
      return broken(at, "a name with a zero in it");
    if (*size > (uint64_t{1} << 62)) return broken(at, "an impossible size");
    entry.mode = static_cast<uint32_t>(number_at(header, 100, 8).value_or(0) & 07777);
    entry.device_major = static_cast<uint32_t>(number_at(header, 329, 8).value_or(0));
    entry.device_minor = static_cast<uint32_t>(number_at(header, 337, 8).value_or(0));
    if (type == 'S') {
      CUFIT_TRY(past, sparse_blocks(header[482] != '\0'));
      (void)past;
    }
    // Links and devices have no contents, whatever their size says (old tars repeat the target's).
    const bool contents = entry.type == TarType::file || entry.type == TarType::other;
    left_ = contents ? *size : 0;
    padding_ = (k_tar_block - left_ % k_tar_block) % k_tar_block;
    entry.size_bytes = left_;
    entry.offset = position_;
    // A directory in the oldest format is a file whose name ends in a slash.
    if (entry.type == TarType::file && !entry.path.empty() && entry.path.back() == '/')
      entry.type = TarType::directory;
    return std::optional<TarEntry>(std::move(entry));
  }
}

Result<size_t> TarReader::read(std::span<std::byte> out) {
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(out.size(), left_));
  if (wanted == 0) return size_t{0};
  CUFIT_TRY(any, fill(out.data(), wanted));
  if (!any) return broken(position_, "the archive ends before its contents do");
  left_ -= wanted;
  return wanted;
}

}  // namespace cufit::formats
