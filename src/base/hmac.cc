// SPDX-License-Identifier: Apache-2.0
#include "base/hmac.h"

#include "base/number.h"
#include "base/sha256.h"

namespace cufit {
namespace {

constexpr size_t k_block = 64;  // bytes that SHA-256 takes at a time

std::string bytes_of_sum(std::string_view message) {
  const std::string hex = sha256(message);
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(*parse_uint(std::string_view(hex).substr(i, 2), 16));
  return out;
}

std::string mixed(std::string key, char with) {
  for (char& c : key) c = static_cast<char>(c ^ with);
  return key;
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string block = key.size() > k_block ? bytes_of_sum(key) : std::string(key);
  block.resize(k_block, '\0');
  const std::string inner = bytes_of_sum(mixed(block, 0x36).append(message));
  return bytes_of_sum(mixed(block, 0x5c).append(inner));
}

}  // namespace cufit
