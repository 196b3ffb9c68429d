// SPDX-License-Identifier: Apache-2.0
#include "facts/nvidia_properties.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cufit::facts {
namespace nvidia_properties_test {

using Values = std::vector<std::string>;

// As nvidia-variant-provider 0.0.2 answers for a driver of CUDA 12.7 and a GPU of capability 8.9.
TEST(NvidiaProperties, AreThoseOfTheProvider) {
  const auto all = nvidia_properties(Version{{12, 7}}, ComputeCapability{8, 9});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "cuda_version_lower_bound");
  EXPECT_EQ(
      Values(all[0].values.begin(), all[0].values.begin() + 10),
      (Values{"12.7", "12.6", "12.5", "12.4", "12.3", "12.2", "12.1", "12.0", "12", "11.20"}));
  EXPECT_EQ(all[0].values.back(), "11");
  EXPECT_EQ(all[0].values.size(), 9u + 22u);
  EXPECT_EQ(all[1].name, "cuda_version_upper_bound");
  EXPECT_EQ(all[1].values.front(), "15.20");
  EXPECT_EQ(all[1].values.back(), "12.8");
  EXPECT_EQ(std::count(all[1].values.begin(), all[1].values.end(), "13"), 1);
  EXPECT_EQ(std::count(all[1].values.begin(), all[1].values.end(), "12"), 0);
  EXPECT_EQ(all[2].name, "sm_arch");
  EXPECT_EQ(all[2].values, (Values{"89_real", "88_real", "87_real", "86_real", "85_real", "84_real",
                                   "83_real", "82_real", "81_real", "80_real", "80_virtual"}));
}

TEST(NvidiaProperties, WithoutADriverThereAreNone) {
  EXPECT_TRUE(nvidia_properties(std::nullopt, ComputeCapability{8, 9}).empty());
  EXPECT_TRUE(nvidia_properties(Version{{10, 2}}, ComputeCapability{7, 0}).empty());
  EXPECT_EQ(nvidia_properties(Version{{12, 7}}, std::nullopt).size(), 2u);
}

TEST(NvidiaProperties, AVariantNeedsOneValueOfEachFeature) {
  const auto machine = nvidia_properties(Version{{12, 7}}, ComputeCapability{8, 9});
  const auto fit = [&](std::vector<formats::VariantFeature> features) {
    return fit_of({"label", std::move(features)}, machine);
  };
  EXPECT_EQ(fit({}), VariantFit::fits);
  EXPECT_EQ(fit({{"nvidia", "cuda_version_lower_bound", {"12.8", "12.6"}}}), VariantFit::fits);
  EXPECT_EQ(fit({{"nvidia", "cuda_version_lower_bound", {"12.8"}}}), VariantFit::differs);
  EXPECT_EQ(
      fit({{"nvidia", "cuda_version_lower_bound", {"12.6"}}, {"nvidia", "sm_arch", {"90_real"}}}),
      VariantFit::differs);
  EXPECT_EQ(fit({{"x86_64", "level", {"v3"}}}), VariantFit::not_known);
  EXPECT_EQ(fit({{"x86_64", "level", {"v3"}}, {"nvidia", "sm_arch", {"90_real"}}}),
            VariantFit::differs);
}

}  // namespace nvidia_properties_test
}  // namespace cufit::facts
