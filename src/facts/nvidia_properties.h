// SPDX-License-Identifier: Apache-2.0
// The properties of a machine in the namespace "nvidia" of wheel variants, as
// nvidia-variant-provider 0.0.2 gives them to an installer. cuda_version_lower_bound: all that the
// driver's CUDA is not older than; cuda_version_upper_bound: all that it is older than; sm_arch: of
// the highest capability, in CMake's words (90_real: machine code for it runs; 90_virtual: PTX).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "formats/python/wheel_variants.h"

namespace cufit::facts {

// In the provider's order: the most important feature first, of each the best value first. Empty:
// no driver, or one that is out of its range (CUDA 11.0 to 15.20); then no variant but "null" fits.
std::vector<formats::VariantFeature> nvidia_properties(const std::optional<Version>& driver_cuda,
                                                       std::optional<ComputeCapability> highest);

enum class VariantFit { fits, differs, not_known };
const char* to_string(VariantFit fit);  // "fits", "differs", "not_known"
// not_known: it has properties of other namespaces (the processor's), and those of "nvidia" fit.
VariantFit fit_of(const formats::LabelledVariant& variant,
                  const std::vector<formats::VariantFeature>& machine);

}  // namespace cufit::facts
