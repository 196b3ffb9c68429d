// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/gbk.h"

#include <iconv.h>

#include <algorithm>

#include "base/utf8.h"

namespace cufit::formats {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Characters of two bytes, 0x81 to 0xFE and 0x40 to 0xFE. Those in daily use (GB 2312) have a high
// second byte, too; in other encodings a high byte mostly stands alone among ASCII. Most must be of
// the former kind; characters of four bytes are too rare to count on.
bool reads_as_gbk(std::string_view text) {
  size_t common = 0, rare = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) continue;
    if (lead == 0x80 || lead == 0xFF || ++i == text.size()) return false;
    const auto trail = static_cast<unsigned char>(text[i]);
    if (trail < 0x40 || trail == 0x7F || trail == 0xFF) return false;
    ++(lead >= 0xA1 && lead <= 0xF7 && trail >= 0xA1 ? common : rare);
  }
  return common > rare;
}

class Converter {
 public:
  Converter() : handle_(::iconv_open("UTF-8", "GB18030")) {}
  ~Converter() {
    if (works()) ::iconv_close(handle_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  bool works() const { return handle_ != reinterpret_cast<iconv_t>(-1); }
  std::optional<std::string> convert(std::string_view text) {
    std::string in(text), out(2 * text.size() + 16, '\0');  // two bytes become three at most
    char *from = in.data(), *to = out.data();
    size_t left = in.size(), room = out.size();
    ::iconv(handle_, nullptr, nullptr, nullptr, nullptr);
    if (::iconv(handle_, &from, &left, &to, &room) == static_cast<size_t>(-1)) return std::nullopt;
    out.resize(out.size() - room);
    return out;
  }

 private:
  iconv_t handle_;
};

}  // namespace

std::optional<std::string> utf8_of_gbk(std::string_view line) {
  const bool ascii = std::all_of(line.begin(), line.end(), [](char c) { return (c & 0x80) == 0; });
  if (ascii || is_utf8(line) || !reads_as_gbk(line)) return std::nullopt;
  thread_local Converter converter;
  if (!converter.works()) return std::nullopt;
  return converter.convert(line);
}

}  // namespace cufit::formats
