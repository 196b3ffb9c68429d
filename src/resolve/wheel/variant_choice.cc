// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/variant_choice.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace cufit::resolve {
namespace {

using facts::VariantFit;
using formats::LabelledVariant;
using Properties = std::vector<formats::VariantFeature>;

constexpr size_t k_last_place = std::numeric_limits<size_t>::max();

std::vector<size_t> places(const LabelledVariant& variant, const Properties& machine) {
  std::vector<size_t> out;
  for (const formats::VariantFeature& have : machine) {
    size_t best = k_last_place;
    for (const formats::VariantFeature& wanted : variant.features) {
      if (wanted.name_space != have.name_space || wanted.name != have.name) continue;
      for (const std::string& value : wanted.values) {
        const auto at = std::find(have.values.begin(), have.values.end(), value);
        if (at != have.values.end())
          best = std::min(best, static_cast<size_t>(at - have.values.begin()));
      }
    }
    out.push_back(best);
  }
  return out;
}

const LabelledVariant* find(const formats::WheelVariants& variants, const std::string& label) {
  for (const LabelledVariant& one : variants.variants)
    if (one.label == label) return &one;
  return nullptr;
}

}  // namespace

VariantChoice choose_variant(const formats::WheelVariants& variants, const Target& target) {
  VariantChoice out;
  const auto properties = [&](std::optional<ComputeCapability> cc) {
    return facts::nvidia_properties(target.driver_cuda, cc);
  };
  const bool no_gpu = target.gpus.empty() && target.unknown_gpus.empty();
  const bool unknown = !target.unknown_gpus.empty();  // the highest of them all is not known
  const Properties machine =
      no_gpu ? Properties()
             : properties(unknown ? std::nullopt : std::optional(target.gpus.back().cc));
  // A machine without a GPU has no property of "nvidia": that is told, unlike a driver that is not.
  const bool told = no_gpu || target.driver_state != Target::Driver::not_told;
  using Key = std::tuple<bool, std::vector<size_t>, std::string>;
  std::vector<std::pair<Key, VariantChoice::Row>> rows;
  for (const LabelledVariant& one : variants.variants) {
    VariantFit fit = facts::fit_of(one, machine);
    const bool nvidia =
        std::any_of(one.features.begin(), one.features.end(),
                    [](const auto& feature) { return feature.name_space == "nvidia"; });
    if (told && machine.empty() && nvidia) fit = VariantFit::differs;
    rows.push_back(
        {{fit == VariantFit::differs, places(one, machine), one.label}, {one.label, fit}});
  }
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [key, row] : rows) {
    if (told && out.taken.empty() && row.fit == VariantFit::fits) out.taken = row.label;
    out.rows.push_back(std::move(row));
  }
  const LabelledVariant* taken = find(variants, out.taken);
  if (taken == nullptr || taken->features.empty()) return out;
  for (const TargetGpu& gpu : target.gpus)
    if (facts::fit_of(*taken, properties(gpu.cc)) == VariantFit::differs)
      out.left_out.push_back(gpu);
  return out;
}

}  // namespace cufit::resolve
