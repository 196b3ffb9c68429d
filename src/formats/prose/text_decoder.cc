// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/text_decoder.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"

namespace cufit::formats {
namespace {

constexpr size_t k_detect_bytes = 512;
constexpr size_t k_longest_control = 64;  // a longer "sequence" is no control sequence

// Length of the control sequence at the beginning of `text` (which starts with ESC); 0 = it is not
// complete yet.
size_t control_length(std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] == '[') {  // CSI: parameters, then a letter
    for (size_t i = 2; i < text.size(); ++i) {
      if (text[i] >= 0x40 && text[i] <= 0x7E) return i + 1;
      if (text[i] < 0x20 || i > k_longest_control) return 2;
    }
    return 0;
  }
  if (text[1] == ']') {  // OSC: up to BEL or ESC backslash
    for (size_t i = 2; i < text.size(); ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\x1b') return i + 1 < text.size() ? i + 2 : 0;
      if (text[i] == '\n' || i > 4 * k_longest_control) return 2;
    }
    return 0;
  }
  return 2;
}

}  // namespace

void TextDecoder::detect(std::string_view bytes) {
  auto begins = [&](std::string_view mark) { return bytes.substr(0, mark.size()) == mark; };
  if (begins("\xFF\xFE")) {
    encoding_ = Encoding::utf16_le;
    return add_utf16(bytes.substr(2));
  }
  if (begins("\xFE\xFF")) {
    encoding_ = Encoding::utf16_be;
    return add_utf16(bytes.substr(2));
  }
  size_t even = 0, odd = 0;  // zero bytes: every second one in mostly ASCII UTF-16
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) ++(i % 2 ? odd : even);
  }
  const size_t units = bytes.size() / 2;
  encoding_ = Encoding::utf8;
  if (units >= 8 && odd * 10 > units * 4 && even * 10 < units) encoding_ = Encoding::utf16_le;
  if (units >= 8 && even * 10 > units * 4 && odd * 10 < units) encoding_ = Encoding::utf16_be;
  if (encoding_ != Encoding::utf8) return add_utf16(bytes);
  pending_ += begins("\xEF\xBB\xBF") ? bytes.substr(3) : bytes;
}

void TextDecoder::add_utf16(std::string_view bytes) {
  for (char c : bytes) {
    half_ += c;
    if (half_.size() < 2) continue;
    const auto a = static_cast<unsigned char>(half_[0]), b = static_cast<unsigned char>(half_[1]);
    const uint32_t unit =
        encoding_ == Encoding::utf16_le ? uint32_t{a} | uint32_t{b} << 8 : uint32_t{a} << 8 | b;
    half_.clear();
    if (unit >= 0xD800 && unit < 0xDC00) {
      high_ = unit;
    } else if (unit >= 0xDC00 && unit < 0xE000) {
      if (high_) append_utf8(pending_, 0x10000 + ((high_ - 0xD800) << 10) + (unit - 0xDC00));
      high_ = 0;
    } else {
      append_utf8(pending_, unit);
    }
  }
}

void TextDecoder::clean(std::string& out, bool last) {
  size_t at = 0;
  while (at < pending_.size()) {
    // Most text has neither: two searches at memory speed find that out.
    const char* begin = pending_.data() + at;
    const size_t left = pending_.size() - at;
    const auto* esc = static_cast<const char*>(std::memchr(begin, '\x1b', left));
    const size_t to_esc = esc ? static_cast<size_t>(esc - begin) : left;
    const auto* cr = static_cast<const char*>(std::memchr(begin, '\r', to_esc));
    const size_t plain = cr ? static_cast<size_t>(cr - begin) : to_esc;
    out.append(begin, plain);
    at += plain;
    if (at >= pending_.size()) break;
    if (pending_[at] == '\x1b') {
      const size_t length = control_length(std::string_view(pending_).substr(at));
      if (length == 0 && !last) break;
      at += length ? length : pending_.size() - at;
    } else {
      if (at + 1 == pending_.size() && !last) break;
      const bool line_end = at + 1 < pending_.size() && pending_[at + 1] == '\n';
      if (!line_end) out += '\v';
      ++at;
    }
  }
  pending_.erase(0, at);
}

void TextDecoder::add(std::string_view bytes, std::string& out) {
  if (encoding_ == Encoding::unknown) {
    first_ += bytes;
    if (first_.size() < k_detect_bytes) return;
    detect(first_);
    first_.clear();
  } else if (encoding_ == Encoding::utf8) {
    pending_ += bytes;
  } else {
    add_utf16(bytes);
  }
  clean(out, false);
}

void TextDecoder::finish(std::string& out) {
  if (encoding_ == Encoding::unknown) detect(first_);
  clean(out, true);
}

}  // namespace cufit::formats
