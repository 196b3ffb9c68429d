// SPDX-License-Identifier: Apache-2.0
#include "resolve/image/image_audit.h"

#include <gtest/gtest.h>

#include "resolve/image/image_require.h"

namespace cufit::resolve {
namespace image_audit_test {

using formats::CodeKind;
using knowledge::Knowledge;

Target target(const char* text) { return *described_target(text, Knowledge::builtin()); }

std::string refused(const char* requirement, const char* machine, const char* name = "CUDA") {
  return refused_by_require({{std::string("NVIDIA_REQUIRE_") + name, requirement}},
                            target(machine));
}

TEST(ImageAudit, CodeForOneCapabilityIsNoGpuOfItsOwn) {
  Wheel wheel;
  wheel.code = {{CodeKind::cubin, "80", "", 400},  {CodeKind::cubin, "90", "", 400},
                {CodeKind::cubin, "90a", "", 3},   {CodeKind::cubin, "100a", "", 2},
                {CodeKind::cubin, "120", "", 400}, {CodeKind::cubin, "120a", "", 9},
                {CodeKind::ptx, "90a", "8.0", 1},  {CodeKind::ptx, "120", "8.8", 400}};
  const std::vector<std::string> gpus = {"8.0", "9.0", "12.0"};
  // Two kernels for sm_100a beside 400 of every other GPU do not serve it.
  EXPECT_EQ(gpu_capabilities(wheel, Knowledge::builtin()), gpus);
  EXPECT_EQ(gpu_ptx(wheel), std::vector<std::string>{"12.0"});
  wheel.code = {{CodeKind::cubin, "90a", "", 40}};
  EXPECT_EQ(gpu_capabilities(wheel, Knowledge::builtin()), std::vector<std::string>{"9.0"});
}

TEST(ImageAudit, TheRuntimeRefusesWhereNoAlternativeHolds) {
  EXPECT_EQ(refused("cuda>=12.6", "RTX 4090,535"), "NVIDIA_REQUIRE_CUDA=cuda>=12.6");
  EXPECT_EQ(refused("cuda>=12.6", "RTX 4090,560"), "");
  EXPECT_EQ(refused("cuda>=12.6 driver>=535,driver<536", "RTX 4090,535"), "");
  EXPECT_NE(refused("cuda>=12.6 driver>=535,driver<536", "RTX 4090,545"), "");
  EXPECT_NE(refused("cuda>=12.6 brand=tesla,driver>=535", "RTX 4090,535"), "");
  // A GPU's brand is not in its name: not known is no refusal.
  EXPECT_EQ(refused("cuda>=12.6 brand=tesla,driver>=535", "A100,535"), "");
  EXPECT_NE(refused("cuda>=12.6 brand=tesla,driver>=535", "A100,525"), "");
  EXPECT_EQ(refused("cuda>=12.6 brand=unknown,driver>=535", "RTX 4090,535"), "");
  EXPECT_EQ(refused("driver>=535.104", "A100,535"), "");
  EXPECT_NE(refused("driver>=535.104", "A100,535.54.03"), "");
  EXPECT_NE(refused("arch>=8.0", "V100,560", "ARCH"), "");
  EXPECT_EQ(refused("", "V100,470"), "");
  EXPECT_EQ(refused("cuda>=12.6", "V100"), "");  // which driver is not told
  EXPECT_EQ(refused_by_require(
                {{"NVIDIA_REQUIRE_CUDA", "cuda>=12.6"}, {"NVIDIA_DISABLE_REQUIRE", "true"}},
                target("RTX 4090,535")),
            "");
}

}  // namespace image_audit_test
}  // namespace cufit::resolve
