// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "checks/doctor.h"
#include "facts/facts.h"

namespace cufit::checks {
namespace order_test {

// A driver that hangs and is also too old for the wheel: both are said, the driver first.
TEST(Order, LowerLayerFirstAmongEqualSeverities) {
  facts::Facts facts;
  facts.kernel.version =
      known<std::string>("535.183.01", SourceKind::file, "/sys/module/nvidia/version");
  facts::NvmlGpu gpu;
  gpu.name = known<std::string>("NVIDIA GeForce RTX 4090", SourceKind::nvml, "name");
  gpu.compute_capability = known<std::string>("8.9", SourceKind::nvml, "cc");
  facts.nvml.init_result = known(0, SourceKind::nvml, "nvmlInit_v2");
  facts.nvml.gpus = {gpu};
  facts.cuda.init_result =
      missing<int>(WhyNot::timeout, SourceKind::cuda, "cuInit", "did not return");
  facts::PythonEnv env;
  env.path = "/env";
  env.active = true;
  env.torch.version = known<std::string>("2.11.0+cu130", SourceKind::file, "version.py");
  env.torch.cuda = known<std::string>("13.0", SourceKind::file, "version.py");
  facts.envs = {env};
  const Report report = examine(facts, knowledge::Knowledge::builtin());
  std::vector<std::string> errors;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::error) errors.push_back(finding.id);
  }
  ASSERT_GE(errors.size(), 2u);
  EXPECT_EQ(errors[0], "driver_probe_hung");
  EXPECT_EQ(errors[1], "driver_too_old");
}

}  // namespace order_test
}  // namespace cufit::checks
