// SPDX-License-Identifier: Apache-2.0
// What installed packages ask of each other, where torch's world is concerned.
#include <gtest/gtest.h>

#include "checks/torch_pins.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace requirements_test {

using namespace world;

facts::Distribution package(std::string name, std::string version, std::vector<std::string> needs) {
  facts::Distribution made;
  made.name = std::move(name);
  made.version = std::move(version);
  made.kind = "dist-info";
  made.installer = "pip";
  made.location = "/env/lib/python3.12/site-packages/" + made.name + ".dist-info";
  made.needs = std::move(needs);
  return made;
}

facts::PythonEnv env_with(const std::vector<facts::Distribution>& packages) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", k_cu130);
  for (const facts::Distribution& one : packages) env.distributions.value->push_back(one);
  return env;
}

TEST(TorchPins, WhoTakesWhichTorch) {
  const facts::PythonEnv env = env_with({
      package("vllm", "0.33.0", {"numpy", "torch==2.14.0", "torchvision==0.29.0"}),
      package("torchvision", "0.26.0", {"numpy", "torch (==2.11.0)"}),
      package("lightning", "2.6.6", {"torch<4.0,>=2.1.0", "torchmetrics>0.7.0"}),
      package("peft", "0.21.2", {"torch"}),
      package("odd", "1.0", {"torch==2.11.*", "torch @ https://example.org/torch.whl"}),
  });
  const std::vector<TorchPin> pins = torch_pins(env);
  ASSERT_EQ(pins.size(), 4u);
  EXPECT_EQ(pins[0].package + " " + pins[0].version + " " + pins[0].requirement,
            "vllm 0.33.0 torch==2.14.0");
  EXPECT_TRUE(pins[0].exact);
  EXPECT_FALSE(pins[0].takes("2.11.0+cu130"));
  EXPECT_TRUE(pins[0].takes("2.14.0+cu126"));
  EXPECT_TRUE(pins[1].exact);
  EXPECT_TRUE(pins[1].takes("2.11.0+cu130"));
  EXPECT_FALSE(pins[1].takes("2.11.1"));
  EXPECT_FALSE(pins[2].exact);
  EXPECT_TRUE(pins[2].takes("2.15.0"));
  EXPECT_FALSE(pins[2].takes("2.0.1"));
  EXPECT_FALSE(pins[3].exact);
  EXPECT_TRUE(pins[3].takes("2.11.1"));
}

TEST(TorchPins, NothingIsReadIntoWhatIsNotThere) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", k_cu130);
  EXPECT_TRUE(torch_pins(env).empty());
  facts::Distribution gone = package("~llm", "1", {"torch==1.0"});
  gone.kind = "leftover";
  env.distributions.value->push_back(gone);
  EXPECT_TRUE(torch_pins(env).empty());
  env.distributions =
      missing<std::vector<facts::Distribution>>(WhyNot::no_permission, SourceKind::file, "/env");
  EXPECT_TRUE(torch_pins(env).empty());
}

}  // namespace requirements_test
}  // namespace cufit::checks
