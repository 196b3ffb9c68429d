// SPDX-License-Identifier: Apache-2.0
#include "facts/nvidia_properties.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::facts {
namespace {

constexpr const char* k_nvidia = "nvidia";
constexpr uint64_t k_first_major = 11, k_last_major = 15, k_last_minor = 20;  // the provider's
constexpr uint64_t k_first_capability = 5;

// "12.4", ..., "12.0", "12": from `minor` down to `end`, then the major alone where it is asked for.
void add_minors(std::vector<std::string>& out, uint64_t major, uint64_t minor, uint64_t end,
                bool whole) {
  for (uint64_t i = minor + 1; i > end; --i) out.push_back(format("{}.{}", major, i - 1));
  if (whole) out.push_back(format("{}", major));
}

}  // namespace

std::vector<formats::VariantFeature> nvidia_properties(const std::optional<Version>& driver_cuda,
                                                       std::optional<ComputeCapability> highest) {
  std::vector<formats::VariantFeature> out;
  if (!driver_cuda) return out;
  const uint64_t major = driver_cuda->part(0), minor = driver_cuda->part(1);
  if (major < k_first_major || major > k_last_major || minor > k_last_minor) return out;
  formats::VariantFeature lower{k_nvidia, "cuda_version_lower_bound", {}};
  for (uint64_t i = major; i >= k_first_major; --i)
    add_minors(lower.values, i, i == major ? minor : k_last_minor, 0, true);
  formats::VariantFeature upper{k_nvidia, "cuda_version_upper_bound", {}};
  for (uint64_t i = k_last_major; i >= major; --i)
    add_minors(upper.values, i, k_last_minor, i == major ? minor + 1 : 0, i != major);
  out.push_back(std::move(lower));
  if (!upper.values.empty()) out.push_back(std::move(upper));
  if (!highest || highest->major < k_first_capability) return out;
  formats::VariantFeature arch{k_nvidia, "sm_arch", {}};
  for (uint64_t i = uint64_t{highest->minor} + 1; i > 0; --i)
    arch.values.push_back(format("{}{}_real", highest->major, i - 1));
  arch.values.push_back(format("{}0_virtual", highest->major));
  out.push_back(std::move(arch));
  return out;
}

const char* to_string(VariantFit fit) {
  return fit == VariantFit::fits ? "fits" : fit == VariantFit::differs ? "differs" : "not_known";
}

VariantFit fit_of(const formats::LabelledVariant& variant,
                  const std::vector<formats::VariantFeature>& machine) {
  bool others = false;  // what cannot be judged: of others, or of a driver that was not told
  for (const formats::VariantFeature& wanted : variant.features) {
    if (wanted.name_space != k_nvidia) {
      others = true;
      continue;
    }
    const auto have = std::find_if(machine.begin(), machine.end(),
                                   [&](const auto& one) { return one.name == wanted.name; });
    if (machine.empty()) {
      others = true;
      continue;
    }
    const bool fits =
        have != machine.end() &&
        std::any_of(wanted.values.begin(), wanted.values.end(), [&](const auto& one) {
          return std::find(have->values.begin(), have->values.end(), one) != have->values.end();
        });
    if (!fits) return VariantFit::differs;
  }
  return others ? VariantFit::not_known : VariantFit::fits;
}

}  // namespace cufit::facts
