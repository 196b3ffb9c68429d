// SPDX-License-Identifier: Apache-2.0
// Wheel variants as the draft of PEP 825 of 17 February 2026 has them (PEP 817 before it): a label
// in the wheel's name, and what it stands for in `*.dist-info/variant.json` of the wheel, or for all
// variants of a release in `NAME-VERSION-variants.json` on the index:
//
//   {"$schema": "...", "default-priorities": {"namespace": ["nvidia"]},
//    "variants": {"cu129": {"nvidia": {"cuda_version_lower_bound": ["12.9"],
//                                      "sm_arch": ["90_real", "120_virtual"]}}, "null": {}}}
//
// A wheel fits a machine that has one value of each of its features. What the values of "nvidia"
// mean is not in the draft: nvidia-variant-provider says it (src/facts/nvidia_properties.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct VariantFeature {
  std::string name_space, name;     // "nvidia", "sm_arch"
  std::vector<std::string> values;  // any of them is enough
};
struct LabelledVariant {
  std::string label;  // "cu129"; "null": fits everywhere
  std::vector<VariantFeature> features;
};
struct WheelVariants {
  std::vector<LabelledVariant> variants;  // in the order of the file
  std::vector<std::string> namespaces;    // the most important first
};

// Error{malformed} "WHERE: what". At most 4 MiB, 1000 variants of 100 features of 1000 values.
Result<WheelVariants> parse_wheel_variants(std::string_view json, const std::string& where);

// "nvidia :: sm_arch :: 90_real", as the draft writes a property.
std::string property_text(const VariantFeature& feature, std::string_view value);

}  // namespace cufit::formats
