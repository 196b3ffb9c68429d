// SPDX-License-Identifier: Apache-2.0
// Extensions that are built for one torch and one CUDA: what another torch brings along.
#include <gtest/gtest.h>

#include "checks/install/fix_plan.h"
#include "checks/install/torch_step.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace extension_release_test {

using namespace world;
using knowledge::Knowledge;

facts::Distribution xformers(const char* version, const char* needs) {
  facts::Distribution out;
  out.name = "xformers";
  out.version = version;
  out.kind = "dist-info";
  out.needs = {needs};
  return out;
}

// xformers is built for one CUDA and one torch, and PyTorch's index has it for each: what replaces
// torch brings the build that loads beside it.
TEST(TorchStep, TheBuildOfAnExtensionComesAlong) {
  const std::string index = " --index-url https://download.pytorch.org/whl/";
  const auto step_of = [](const char* gpu, const char* cc, const char* driver,
                          const facts::PythonEnv& env) {
    World w;
    w.gpu(gpu, cc).driver(driver);
    w.env(env);
    const FixPlan plan = plan_fix(w.facts, Knowledge::builtin());
    EXPECT_TRUE(plan.certain) << gpu;
    for (const FixStep& step : plan.steps) EXPECT_TRUE(step.simulated) << step.finding.id;
    return torch_step(make_input(w.facts, Knowledge::builtin()), env);
  };
  facts::PythonEnv env = torch_env("2.7.0", "cu126", "12.6", {cubin("sm_80"), cubin("sm_90")});
  env.distributions.value->push_back(xformers("0.0.30", "torch==2.7.0"));
  // The same release for CUDA 11.
  EXPECT_EQ(step_of("NVIDIA A800 80GB PCIe", "8.0", "470.82.01", env).command,
            "/env/bin/python -m pip install torch==2.7.0+cu118" + index +
                "cu118 && /env/bin/python -m pip install --force-reinstall --no-deps "
                "xformers==0.0.30" +
                index + "cu118");
  // The build for another CUDA 12 loads.
  EXPECT_EQ(step_of("NVIDIA GeForce RTX 5090", "12.0", "580.95.05", env).command,
            "/env/bin/python -m pip install torch==2.7.0+cu128" + index + "cu128");
  // No build of this torch has code for the GPU: another torch, with the xformers for it.
  env = torch_env("2.5.1", "cu124", "12.4", {cubin("sm_80"), cubin("sm_90")});
  env.distributions.value->push_back(xformers("0.0.28.post3", "torch==2.5.1"));
  const TorchStep moved = step_of("NVIDIA GeForce RTX 5090", "12.0", "580.95.05", env);
  EXPECT_EQ(moved.pinner, "");
  ASSERT_EQ(moved.moved.size(), 1u);
  EXPECT_NE(moved.command.find(moved.moved[0].package + "==" + moved.moved[0].version + index +
                               moved.pick->tag),
            std::string::npos)
      << moved.command;
  // There is none for GPUs older than 7.5: who pins torch is named, as of other packages.
  env = torch_env("2.5.1", "cu124", "12.4", {cubin("sm_80"), cubin("sm_90")});
  env.distributions.value->push_back(xformers("0.0.28.post3", "torch==2.5.1"));
  World w;
  w.gpu("NVIDIA GeForce RTX 5090", "12.0").gpu("NVIDIA GeForce GTX 1080", "6.1");
  w.driver("580.95.05").env(env);
  EXPECT_TRUE(torch_step(make_input(w.facts, Knowledge::builtin()), env).moved.empty());
}

}  // namespace extension_release_test
}  // namespace cufit::checks
