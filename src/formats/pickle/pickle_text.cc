// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle_text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/utf8.h"

namespace cufit::formats {
namespace {

using Kind = PickleValue::Kind;

PickleValue signed_value(int64_t value) {
  return {Kind::integer, 0, 0, static_cast<uint64_t>(value)};
}

// `digits` hexadecimal digits at the start of the text, or nothing.
std::optional<uint32_t> hex(std::string_view text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + digits, value, 16);
  if (error != std::errc() || end != text.data() + digits) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> unquote_pickle(std::string_view line) {
  if (line.size() < 2 || line.front() != line.back()) return std::nullopt;
  if (line.front() != '\'' && line.front() != '"') return std::nullopt;
  line = line.substr(1, line.size() - 2);
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      out += line[i];
      continue;
    }
    char c = line[++i];
    if (c == 'x') {
      if (auto value = hex(line.substr(i + 1), 2)) {
        out += static_cast<char>(*value);
        i += 2;
        continue;
      }
    }
    static constexpr std::string_view k_from = "ntr\\'\"", k_to = "\n\t\r\\'\"";
    size_t known = k_from.find(c);
    if (known == std::string_view::npos) {
      out += '\\';
      out += c;
    } else {
      out += k_to[known];
    }
  }
  return out;
}

std::string unescape_pickle(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    size_t digits = 0;
    if (line[i] == '\\' && i + 1 < line.size()) {
      digits = line[i + 1] == 'u' ? 4 : line[i + 1] == 'U' ? 8 : 0;
    }
    auto code = digits ? hex(line.substr(i + 2), digits) : std::nullopt;
    if (code && *code <= 0x10ffff) {
      append_utf8(out, *code);
      i += 1 + digits;
    } else {
      append_utf8(out, static_cast<unsigned char>(line[i]));
    }
  }
  return out;
}

std::optional<PickleValue> pickle_integer(std::string_view line) {
  if (line == "01" || line == "00") return PickleValue{Kind::boolean, 0, 0, line == "01"};
  if (!line.empty() && line.back() == 'L') line.remove_suffix(1);
  const char* end = line.data() + line.size();
  int64_t value = 0;
  auto result = std::from_chars(line.data(), end, value);
  if (result.ec == std::errc() && result.ptr == end) return signed_value(value);
  uint64_t large = 0;
  result = std::from_chars(line.data(), end, large);
  if (result.ec == std::errc() && result.ptr == end)
    return PickleValue{Kind::unsigned_, 0, 0, large};
  bool number = result.ec == std::errc::result_out_of_range && result.ptr == end;
  if (!number && line.size() > 1 && line[0] == '-') {
    number = std::all_of(line.begin() + 1, line.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  if (!number) return std::nullopt;
  return PickleValue{Kind::huge, 0, 0, 0};
}

std::optional<PickleValue> pickle_real(std::string_view line) {
  std::string copy(line);  // strtod wants an end; std::from_chars of double is missing in g++ 10
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size()) return std::nullopt;
  PickleValue result{Kind::real, 0, 0, 0};
  std::memcpy(&result.bits, &value, sizeof value);
  return result;
}

PickleValue pickle_long(const unsigned char* bytes, size_t size) {
  if (size == 0) return signed_value(0);
  unsigned char sign = bytes[size - 1] & 0x80 ? 0xff : 0;
  size_t used = size;  // without the bytes that only repeat the sign
  while (used > 8 && bytes[used - 1] == sign) --used;
  if (used > 8) return {Kind::huge, 0, 0, 0};
  uint64_t value = sign ? ~uint64_t{0} : 0;
  for (size_t i = used; i-- > 0;) value = value << 8 | bytes[i];
  bool fits = (static_cast<int64_t>(value) < 0) == (sign != 0);
  if (fits) return signed_value(static_cast<int64_t>(value));
  return sign ? PickleValue{Kind::huge, 0, 0, 0} : PickleValue{Kind::unsigned_, 0, 0, value};
}

}  // namespace cufit::formats
