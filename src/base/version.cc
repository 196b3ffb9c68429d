// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <algorithm>

namespace cufit {

std::string Version::text() const {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += '.';
    out += std::to_string(parts[i]);
  }
  return out;
}

std::strong_ordering operator<=>(const Version& a, const Version& b) {
  for (size_t i = 0; i < std::max(a.parts.size(), b.parts.size()); ++i) {
    if (auto order = a.part(i) <=> b.part(i); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

std::optional<Version> parse_version(std::string_view text) {
  Version out;
  size_t i = 0;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9' && out.parts.size() < 8) {
    uint64_t value = 0;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
      value = value * 10 + static_cast<uint64_t>(text[i++] - '0');
      if (value > UINT32_MAX) return std::nullopt;
    }
    out.parts.push_back(static_cast<uint32_t>(value));
    if (i + 1 < text.size() && text[i] == '.' && text[i + 1] >= '0' && text[i + 1] <= '9') {
      ++i;
    } else {
      break;
    }
  }
  if (out.parts.empty()) return std::nullopt;
  return out;
}

std::string cuda_version_text(int encoded) {
  return std::to_string(encoded / 1000) + "." + std::to_string(encoded % 1000 / 10);
}

std::string ComputeCapability::text() const {
  return std::to_string(major) + "." + std::to_string(minor);
}
std::string ComputeCapability::sm() const { return std::to_string(major) + std::to_string(minor); }

std::optional<ComputeCapability> parse_compute_capability(std::string_view text) {
  std::optional<Version> version = parse_version(text);
  if (!version || version->parts.size() != 2) return std::nullopt;
  return ComputeCapability{version->part(0), version->part(1)};
}

}  // namespace cufit
