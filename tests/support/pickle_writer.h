// SPDX-License-Identifier: Apache-2.0
// Small pickles as bytes, the way torch's own C++ pickler writes them (protocol 2, no batches, no
// memo): items first, then the opcode that moves them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cufit::testing {

inline std::string little(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}
inline std::string text(std::string_view value) {
  return "X" + little(value.size(), 4) + std::string(value);
}
inline std::string number(int64_t value) {
  return std::string("\x8a\x08") + little(static_cast<uint64_t>(value), 8);
}
inline std::string boolean(bool value) { return value ? "\x88" : "\x89"; }
inline std::string list(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const std::string& item : items) out += item;
  return out + "e";
}
using Pairs = std::vector<std::pair<std::string_view, std::string>>;
inline std::string dict(const Pairs& pairs) {
  std::string out = "}(";
  for (const auto& [key, value] : pairs) out += text(key) + value;
  return out + "u";
}
inline std::string pair(int64_t first, int64_t second) {
  return number(first) + number(second) + "\x86";
}
inline std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace cufit::testing
