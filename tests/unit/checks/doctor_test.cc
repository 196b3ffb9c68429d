// SPDX-License-Identifier: Apache-2.0
// The engine as a whole: merging of sources, root causes, chains and verdicts, --gpu and --driver.
#include <gtest/gtest.h>

#include "checks/evidence.h"
#include "checks/report_sections.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace doctor_test {

using namespace world;
using knowledge::Knowledge;

Report examine(const World& w) { return checks::examine(w.facts, Knowledge::builtin()); }

World healthy() {
  World w;
  w.gpu("NVIDIA H200", "9.0")
      .driver("580.95.05")
      .cuinit(0)
      .env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  facts::CudaDevice device;
  device.pci_address = w.facts.nvml.gpus[0].pci_address;
  device.compute_capability = known<std::string>("9.0", SourceKind::cuda, "cuDeviceGetAttribute");
  device.compute_check = known<std::string>("ok", SourceKind::cuda, "compute check");
  w.facts.cuda.devices.push_back(device);
  w.facts.cuda.driver_version = known(13000, SourceKind::cuda, "cuDriverGetVersion");
  w.facts.pci.value->push_back(pci_gpu(0, "2335"));
  return w;
}

TEST(Input, OneGpuFromAllSourcesAndBridgesAreNone) {
  World w = healthy();
  w.facts.cuda.devices[0].pci_address =
      known<std::string>("00000000:01:00.0", SourceKind::cuda, "cuDeviceGetPCIBusId");
  facts::PciGpu bridge = pci_gpu(1, "22a3");
  bridge.class_code = "0680";
  w.facts.pci.value->push_back(bridge);
  Input input = make_input(w.facts, Knowledge::builtin());
  ASSERT_EQ(input.gpus.size(), 1u);
  EXPECT_NE(input.gpus[0].cuda, nullptr);
  EXPECT_NE(input.gpus[0].pci, nullptr);
  EXPECT_EQ(input.gpus[0].label, "0: NVIDIA H200 (9.0)");
  EXPECT_EQ(input.driver_cuda->text(), "13.0");
}

TEST(Input, FasterFirstOrderIsNotTakenForIndexOrder) {
  World w;
  w.gpu("NVIDIA GeForce GTX 1080", "6.1").gpu("NVIDIA GeForce RTX 4090", "8.9");
  for (const char* name : {"NVIDIA GeForce RTX 4090", "NVIDIA GeForce GTX 1080"}) {
    facts::CudaDevice device;
    device.ordinal = uint32_t(w.facts.cuda.devices.size());
    device.name = known<std::string>(name, SourceKind::cuda, "cuDeviceGetName");
    device.pci_address = known<std::string>(device.ordinal == 0 ? "0000:02:00.0" : "0000:01:00.0",
                                            SourceKind::cuda, "");
    w.facts.cuda.devices.push_back(device);
  }
  Input input = make_input(w.facts, Knowledge::builtin());
  ASSERT_EQ(input.gpus.size(), 2u);
  EXPECT_EQ(input.gpus[0].cuda->ordinal, 1u);
  EXPECT_EQ(input.gpus[1].cuda->ordinal, 0u);
}

TEST(Input, CapabilityFromTheTableSaysSo) {
  World w;
  w.facts.pci.value->push_back(pci_gpu(0, "2204"));
  Input input = make_input(w.facts, Knowledge::builtin());
  ASSERT_EQ(input.gpus.size(), 1u);
  EXPECT_EQ(input.gpus[0].cc->text(), "8.6");
  EXPECT_EQ(seen(input.gpus[0].cc_source, "8.6").kind, "table");
}

TEST(RootCauses, LowerLayerExplainsUpperOnes) {
  Finding low = finding("driver_lib_mismatch", Severity::error, k_machine);
  Finding answer = finding("driver_answer_unknown", Severity::error, k_machine);
  Finding other = finding("ext_arch_missing", Severity::warning, "/env/x.so");
  std::vector<Finding> kept = keep_root_causes({answer, other, low});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].id, "driver_lib_mismatch");
  EXPECT_EQ(kept[0].consequences, Texts{"driver_answer_unknown"});
  EXPECT_EQ(kept[1].id, "ext_arch_missing");
}

TEST(RootCauses, OnlyTheSameSubjectAndOnlyCertainCauses) {
  Finding cause = finding("torch_not_cuda_build", Severity::error, "env /a");
  Finding same = finding("ext_abi_mismatch", Severity::error, "/a/lib/x.so");
  Finding other = finding("ext_abi_mismatch", Severity::error, "/b/lib/x.so");
  EXPECT_EQ(keep_root_causes({cause, same, other}).size(), 2u);
  cause.severity = Severity::unknown;
  EXPECT_EQ(keep_root_causes({cause, same, other}).size(), 3u);
}

// libcuda fails on its own account: no runtime's age makes cuInit return 999.
TEST(RootCauses, AnOldDriverDoesNotExplainAFailingCuInit) {
  Finding old = finding("driver_too_old", Severity::error, "env /a");
  Finding answer = finding("driver_answer_unknown", Severity::error, k_machine);
  EXPECT_EQ(keep_root_causes({old, answer}).size(), 2u);
}

TEST(RootCauses, ChainsOfCausesEndAtTheLowestAndEqualOnesMerge) {
  Finding a = finding("gpu_fell_off_bus", Severity::error, "GPU 0");
  Finding b = finding("dev_nodes_missing", Severity::error, k_machine);
  Finding c = finding("no_cuda_device", Severity::error, k_machine);
  std::vector<Finding> kept = keep_root_causes({c, b, a, a});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].id, "gpu_fell_off_bus");
  EXPECT_EQ(kept[0].consequences.size(), 2u);
}

TEST(Doctor, Verdicts) {
  Report good = examine(healthy());
  EXPECT_EQ(good.verdict, LinkState::ok);
  for (const Link& link : good.chains.at(0).links)
    if (link.name != "libraries") {
      EXPECT_EQ(link.state, LinkState::ok) << link.key;
    }

  World old = healthy();
  old.driver("535.183.01");
  old.facts.cuda.driver_version = known(12020, SourceKind::cuda, "cuDriverGetVersion");
  Report broken = examine(old);
  EXPECT_EQ(broken.verdict, LinkState::broken);
  ASSERT_FALSE(broken.findings.empty());
  EXPECT_EQ(broken.findings[0].id, "driver_too_old");

  World minor = old;
  minor.facts.envs = {torch_env("2.7.1", "cu126", "12.6", k_cu126)};
  EXPECT_EQ(examine(minor).verdict, LinkState::limited);

  World none;
  none.gpu("NVIDIA H200", "9.0").driver("580.95.05").cuinit(0);
  EXPECT_EQ(examine(none).verdict, LinkState::unknown);
}

TEST(Doctor, EveryLinkAndAbilityHasATextInBothLanguages) {
  World w = healthy();
  Report report = examine(w);
  std::vector<Link> links = report.abilities;
  for (const Chain& chain : report.chains)
    links.insert(links.end(), chain.links.begin(), chain.links.end());
  ASSERT_GE(links.size(), 10u);
  for (const Link& link : links)
    for (const char* lang : {"en", "zh"})
      EXPECT_FALSE(Knowledge::builtin().message(link.key, lang).empty()) << link.key;
}

std::string ability(const char* gpu, const char* cc, const char* name) {
  World w;
  w.gpu(gpu, cc).driver("580.95.05").env(torch_env("2.7.1", "cu126", "12.6", k_cu126));
  for (const Link& link : examine(w).abilities)
    if (link.name == name) return link.key;
  return "none";
}

TEST(Abilities, ByCapabilityAndChip) {
  EXPECT_EQ(ability("NVIDIA GeForce RTX 4090", "8.9", "fp8"), "ability.fp8.yes");
  EXPECT_EQ(ability("NVIDIA GeForce RTX 3090", "8.6", "fp8"), "ability.fp8.no");
  EXPECT_EQ(ability("NVIDIA H200", "9.0", "fp8"), "ability.fp8.yes");
  EXPECT_EQ(ability("NVIDIA H200", "9.0", "fp4"), "ability.fp4.no");
  EXPECT_EQ(ability("Tesla V100-SXM2-16GB", "7.0", "bf16"), "ability.bf16.emulated");
  EXPECT_EQ(ability("NVIDIA GeForce RTX 2080 Ti", "7.5", "fp16"), "ability.fp16.yes");
  EXPECT_EQ(ability("NVIDIA GeForce GTX 1660 Ti", "7.5", "fp16"), "ability.fp16.no_tensor_cores");
  EXPECT_EQ(ability("NVIDIA GeForce GTX 1080 Ti", "6.1", "fp16"), "ability.fp16.memory_only");
  EXPECT_EQ(ability("NVIDIA GeForce RTX 5090", "12.0", "fp4"),
            "none");  // this torch does not run on it
}

TEST(Assume, AnotherGpuAndAnotherDriver) {
  World w = healthy();
  auto facts = assume(w.facts, {{"RTX 5090"}, "550.120"}, Knowledge::builtin());
  ASSERT_TRUE(facts) << facts.error().text();
  ASSERT_EQ(facts->nvml.gpus.size(), 1u);
  EXPECT_EQ(*facts->nvml.gpus[0].compute_capability, "12.0");
  EXPECT_EQ(facts->nvml.gpus[0].name.source.kind, SourceKind::assumed);
  EXPECT_FALSE(facts->cuda.init_result);
  Report report = checks::examine(*facts, Knowledge::builtin());
  EXPECT_EQ(report.verdict, LinkState::broken);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].id, "driver_too_old_for_gpu");
}

TEST(Assume, CapabilityAloneAndBadInput) {
  const Knowledge& k = Knowledge::builtin();
  facts::Facts facts = healthy().facts;
  auto one = assume(facts, {{"8.9", "sm_120"}, ""}, k);
  ASSERT_TRUE(one);
  EXPECT_EQ(make_input(*one, k).gpus[1].label, "1: sm_120 (12.0)");
  const WhatIf wrong[] = {{{"8.5"}, ""}, {{"RTX 409"}, ""}, {{}, "new"}, {{}, "535."}, {{}, "5"}};
  for (const WhatIf& bad : wrong) {
    auto result = assume(facts, bad, k);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::usage);
  }
  EXPECT_NE(assume(facts, {{"RTX 409"}, ""}, k).error().what.find("RTX 4090"), std::string::npos);
}

TEST(Assume, AMachineWithoutDriverStaysUnknownNotBroken) {
  World w;
  w.facts.kernel.version =
      missing<std::string>(WhyNot::not_present, SourceKind::file, "/sys/module/nvidia/version");
  w.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  auto facts = assume(w.facts, {{"RTX 4090"}, ""}, Knowledge::builtin());
  ASSERT_TRUE(facts);
  EXPECT_EQ(checks::examine(*facts, Knowledge::builtin()).verdict, LinkState::unknown);
}

TEST(RootCause, NoEnvironmentAndNoTorchAreOneFinding) {
  Finding none = finding("no_python_env", Severity::warning, k_machine);
  Finding torch = finding("torch_not_installed", Severity::warning, k_machine);
  std::vector<Finding> kept = keep_root_causes({torch, none});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].id, "no_python_env");
}

// "Nothing says why" is no finding where another one says why, and a link names the cause, not its
// echo.
TEST(RootCause, CausesComeFirstAndAnAnsweredQuestionGoes) {
  auto ids = [](std::vector<Finding> findings) {
    Texts out;
    for (const Finding& one : causes_first(std::move(findings))) out.push_back(one.id);
    return out;
  };
  Finding answer = finding("driver_answer_unknown", Severity::error, k_machine);
  Finding none = finding("no_cuda_device", Severity::error, k_machine);
  Finding hidden = finding("cuda_visible_devices", Severity::error, k_machine);
  EXPECT_EQ(ids({answer, none, hidden}), (Texts{"cuda_visible_devices", "no_cuda_device"}));
  EXPECT_EQ(ids({answer, none}), (Texts{"driver_answer_unknown", "no_cuda_device"}));
  hidden.severity = Severity::note;  // a note explains no error
  EXPECT_EQ(ids({answer, hidden}), (Texts{"driver_answer_unknown", "cuda_visible_devices"}));
}

}  // namespace doctor_test
}  // namespace cufit::checks
