// SPDX-License-Identifier: Apache-2.0
// Dotted versions as drivers, CUDA, glibc and PTX ISA write them: "535.183.01", "12.8", "2.36".
// Not for Python package versions (PEP 440 has its own order).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cufit {

struct Version {
  std::vector<uint32_t> parts;  // at least one

  uint32_t part(size_t index) const { return index < parts.size() ? parts[index] : 0; }
  std::string text() const;  // without leading zeros: "535.183.1"
  // Missing parts count as 0: 12 == 12.0.
  friend std::strong_ordering operator<=>(const Version& a, const Version& b);
  friend bool operator==(const Version& a, const Version& b) { return (a <=> b) == 0; }
};

// Accepts leading digits and dots and ignores what follows ("12.8-ea" is 12.8); nullopt without a
// leading digit.
std::optional<Version> parse_version(std::string_view text);

// 12080 (cuDriverGetVersion) -> "12.8"
std::string cuda_version_text(int encoded);

struct ComputeCapability {
  uint32_t major = 0, minor = 0;
  std::string text() const;  // "8.9"
  std::string sm() const;    // "89", "120"
  friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};
std::optional<ComputeCapability> parse_compute_capability(std::string_view text);  // "8.9"

}  // namespace cufit
