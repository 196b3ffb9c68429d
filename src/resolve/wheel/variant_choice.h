// SPDX-License-Identifier: Apache-2.0
// Which wheel variant of a release an installer that knows wheel variants (PEP 825, a draft) takes on
// a machine: not always the one that runs there, for it looks at the highest GPU and at the driver's
// own CUDA alone.
#pragma once

#include <string>
#include <vector>

#include "facts/nvidia_properties.h"
#include "formats/python/wheel_variants.h"
#include "resolve/wheel/target.h"

namespace cufit::resolve {

struct VariantChoice {
  struct Row {
    std::string label;
    facts::VariantFit fit = facts::VariantFit::not_known;
  };
  std::vector<Row> rows;  // as an installer orders them; those that differ come last
  std::string
      taken;  // "null": the one for every machine; empty: none fits or the driver is not told
  // GPUs of the target whose code the one that is taken does not name.
  std::vector<TargetGpu> left_out;
};

// The order is that of variantlib 0.2.2: of each feature, the most important first, the place of its
// best value in the provider's list; a feature that a variant does not have counts as the last place;
// then the label. Variants with properties of others than "nvidia" are not judged and not taken.
VariantChoice choose_variant(const formats::WheelVariants& variants, const Target& target);

}  // namespace cufit::resolve
