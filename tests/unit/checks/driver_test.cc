// SPDX-License-Identifier: Apache-2.0
// Driver against runtime, GPU and libcuda; what the driver answered.
#include <gtest/gtest.h>

#include "checks/torch_checks.h"
#include "checks/torch_env.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace driver_test {

using namespace world;

struct FloorCase {
  const char* driver;
  const char* tag;
  const char* cuda;
  Texts want;
};

TEST(DriverFloor, ComparesDriverNumbersWithTheFamilysFloor) {
  const Texts ok, minor{"driver_minor_compat/note"};
  const FloorCase cases[] = {
      {"580.65.06", "cu130", "13.0", ok},
      {"595.58.03", "cu130", "13.0", ok},
      {"580.65.06", "cu132", "13.2", minor},
      {"520.61.05", "cu121", "12.1", {"driver_too_old/error"}},  // the article's RTX 3090
      {"525.60.13", "cu126", "12.6", minor},
      {"525.60.12", "cu126", "12.6", {"driver_too_old/error"}},
      {"535.183.01", "cu121", "12.1", ok},
      {"535.183.01", "cu126", "12.6", minor},  // "CUDA Version 12.2" is enough for a cu126 wheel
      {"450.80.02", "cu118", "11.8", minor},
      {"450.66", "cu118", "11.8", {"driver_too_old/error/no_wheel"}},  // nor does it know the GPU
      {"450.51.06", "cu110", "11.0", ok},  // 11.0 runs on the driver of its own release
      {"440.33.01", "cu102", "10.2", ok},  // no families before 11
      {"525", "cu126", "12.6", minor},     // a branch means its newest release
      {"570.124.06", "cu130", "13.0", {"driver_too_old/error"}},
  };
  for (const FloorCase& one : cases) {
    World w;
    w.gpu("NVIDIA GeForce RTX 3090", "8.6")
        .driver(one.driver)
        .env(torch_env("2.9.0", one.tag, one.cuda, k_cu130));
    EXPECT_EQ(brief(run(check_driver_floor, w)), one.want) << one.driver << " " << one.cuda;
  }
}

TEST(DriverFloor, NamesBothNumbersAndAWheelThatRunsHere) {
  World w;
  w.gpu("NVIDIA GeForce RTX 3090", "8.6")
      .driver("520.61.05")
      .env(torch_env("2.3.1", "cu121", "12.1", k_cu126));
  std::vector<Finding> found = run(check_driver_floor, w);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].args["have"], "520.61.05");
  EXPECT_EQ(found[0].args["need"], "525.60.13");
  EXPECT_EQ(found[0].args["install_torch"], "2.3.1+cu118");
  EXPECT_EQ(found[0].args["install"],
            "/env/bin/python -m pip install torch==2.3.1+cu118 --index-url "
            "https://download.pytorch.org/whl/cu118");
}

TEST(DriverFloor, ForwardCompatibilityCountsOnDataCentreGpusOnly) {
  World w;
  w.gpu("NVIDIA A100-SXM4-80GB", "8.0")
      .driver("535.183.01")
      .libcuda("compat", "580.65.06", {"535", "570"});
  w.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  EXPECT_EQ(brief(run(check_driver_floor, w)), Texts{});
  World g;
  g.gpu("NVIDIA GeForce RTX 4090", "8.9")
      .driver("535.183.01")
      .libcuda("compat", "580.65.06", {"535", "570"});
  g.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  EXPECT_EQ(brief(run(check_driver_floor, g)), Texts{"driver_too_old/error"});
}

// Each condition of the one rule alone: what doctor and resolve both ask.
TEST(ForwardCompat, EveryConditionCounts) {
  const auto helps = [](std::vector<CompatCandidate> gpus, const char* driver, const char* cuda) {
    return forward_compat_helps(gpus, *parse_version(driver), *parse_version(cuda),
                                knowledge::Knowledge::builtin());
  };
  const CompatCandidate a100{CompatGpu::eligible, ComputeCapability{8, 0}};
  const CompatCandidate v100{CompatGpu::eligible, ComputeCapability{7, 0}};
  const CompatCandidate geforce{CompatGpu::not_eligible, ComputeCapability{8, 0}};
  const CompatCandidate board{CompatGpu::unknown, ComputeCapability{8, 0}};
  const CompatCandidate no_capability{CompatGpu::eligible, std::nullopt};
  EXPECT_TRUE(helps({a100}, "535.183.01", "13.2"));
  EXPECT_TRUE(helps({a100, no_capability}, "535", "13.2"));
  EXPECT_FALSE(helps({}, "535.183.01", "13.2"));
  EXPECT_FALSE(helps({geforce}, "535.183.01", "13.2"));
  EXPECT_FALSE(helps({a100, board}, "535.183.01", "13.2"));
  EXPECT_FALSE(helps({a100, v100}, "535.183.01", "13.2"));  // 595 does not drive Volta
  EXPECT_TRUE(helps({a100, v100}, "535.183.01", "13.0"));
  EXPECT_FALSE(helps({a100}, "575.57.08", "13.2"));   // a branch that its list leaves out
  EXPECT_FALSE(helps({a100}, "535.183.01", "12.6"));  // no such list
  EXPECT_TRUE(helps({a100}, "470.82.01", "12.8.1"));  // the package is of the minor
  EXPECT_FALSE(helps({a100}, "470.82.01", "13.8"));
}

TEST(DriverText, TheThirdPartHasTwoDigitsButInJetsonsSeries) {
  for (const char* text : {"450.80.02", "580.65.06", "535.183.01", "540.4.0", "525", "470.82"})
    EXPECT_EQ(driver_text(*parse_version(text)), text);
}

// The newer driver that cuda-compat stands for (595 for CUDA 13.2) has dropped Volta: there the
// package is no way out. For Ampere it is, and so it is for Volta where the driver still knows it.
TEST(DriverFloor, CudaCompatHelpsNoGpuThatItsDriverDropped) {
  const auto says_compat = [](const char* gpu, const char* cc, const char* driver, const char* tag,
                              const char* cuda) {
    World w;
    w.gpu(gpu, cc).driver(driver).env(torch_env("2.11.0", tag, cuda, k_cu130));
    const std::vector<Finding> found = run(check_driver_floor, w);
    EXPECT_EQ(found.size(), 1u) << gpu;
    return !found.empty() && found[0].variant.rfind("compat", 0) == 0;
  };
  EXPECT_TRUE(says_compat("NVIDIA A100-SXM4-80GB", "8.0", "535.183.01", "cu132", "13.2"));
  EXPECT_FALSE(says_compat("Tesla V100-SXM2-32GB", "7.0", "535.183.01", "cu132", "13.2"));
  EXPECT_TRUE(says_compat("Tesla V100-SXM2-32GB", "7.0", "535.183.01", "cu130", "13.0"));
  // The package for 13.2 does not list 575, the one for 13.0 does.
  EXPECT_FALSE(says_compat("NVIDIA A100-SXM4-80GB", "8.0", "575.57.08", "cu132", "13.2"));
  EXPECT_TRUE(says_compat("NVIDIA A100-SXM4-80GB", "8.0", "575.57.08", "cu130", "13.0"));
}

TEST(DriverFloor, LiveDriverDecidesUnderWsl) {
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9").env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  w.facts.system.wsl = file<std::string>("2", "/proc/version");
  w.facts.nvml.driver_version =
      known<std::string>("566.03", SourceKind::nvml, "nvmlSystemGetDriverVersion");
  w.facts.cuda.driver_version = known(12070, SourceKind::cuda, "cuDriverGetVersion");
  EXPECT_EQ(brief(run(check_driver_floor, w)), Texts{"driver_too_old/error/wsl"});
  w.facts.cuda.driver_version = known(13000, SourceKind::cuda, "cuDriverGetVersion");
  EXPECT_EQ(brief(run(check_driver_floor, w)), Texts{});
}

TEST(DriverFloor, UnreadableDriverIsUnknownAndNoDriverIsAnothersFinding) {
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9").env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  w.facts.kernel.version =
      missing<std::string>(WhyNot::no_permission, SourceKind::file, "/sys/module/nvidia/version");
  EXPECT_EQ(brief(run(check_driver_floor, w)), Texts{"driver_too_old/unknown"});
  w.facts.kernel.version.why = WhyNot::not_present;
  EXPECT_EQ(brief(run(check_driver_floor, w)), Texts{});
}

TEST(DriverWindow, OldAndNewBranchesAndFlavours) {
  struct Case {
    const char* device;
    const char* driver;
    const char* flavour;
    Texts want;
  };
  const Case cases[] = {
      {"1b06", "590.48.01", "proprietary", {}},  // GTX 1080 Ti: no row, nothing claimed
      {"1b06", "580.95.05", "proprietary", {}},
      {"1b06", "580.95.05", "open", {}},
      {"2b85", "550.120", "open", {"driver_too_old_for_gpu/error"}},  // RTX 5090
      {"2b85", "570.124.06", "proprietary", {"driver_kernel_module_flavour/error/open"}},
      {"2b85", "570.124.06", "open", {}},
      {"2204", "535.183.01", "open", {}},  // RTX 3090
  };
  for (const Case& one : cases) {
    World w;
    w.driver(one.driver);
    w.facts.kernel.flavour = file<std::string>(one.flavour, "/proc/driver/nvidia/version");
    w.facts.pci.value->push_back(pci_gpu(0, one.device));
    EXPECT_EQ(brief(run(check_driver_window, w)), one.want) << one.device << " " << one.driver;
  }
}

TEST(DriverWindow, DescribedPascalOnTwoDrivers) {
  for (const char* driver : {"590.48.01", "580.95.05"}) {
    World w;
    WhatIf what_if{{"GeForce GTX 1080 Ti"}, driver};
    w.facts = *assume(w.facts, what_if, knowledge::Knowledge::builtin());
    Texts want = driver[1] == '9' ? Texts{"driver_dropped_gpu/error"} : Texts{};
    EXPECT_EQ(brief(run(check_driver_window, w)), want) << driver;
  }
}

TEST(DriverWindow, TheKernelsOwnLineTellsOfADroppedGpu) {
  World w;
  w.driver("590.48.01");
  w.facts.pci.value->push_back(pci_gpu(0, "1b06"));
  std::string line = "NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please";
  w.facts.kernel.log = file(std::vector<std::string>{line}, "dmesg");
  std::vector<Finding> found = run(check_driver_window, w);
  ASSERT_EQ(brief(found), Texts{"driver_dropped_gpu/error"});
  EXPECT_EQ(found[0].args["last"], "580");
}

TEST(DriverWindow, AGpuThatTheDriverShowsIsDriven) {
  World w;
  w.gpu("NVIDIA GeForce GTX 1080 Ti", "6.1").driver("590.48.01");
  EXPECT_EQ(brief(run(check_driver_window, w)), Texts{});
}

TEST(Compat, RefusedOnGeForceAndAllowedOnDataCentre) {
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("550.120").libcuda("compat", "580.65.06", {"550"});
  EXPECT_EQ(brief(run(check_compat, w)), Texts{"compat_libcuda_unsupported/error"});
  w.cuinit(804);
  EXPECT_EQ(brief(run(check_compat, w)), Texts{"compat_libcuda_unsupported/error"});
  w.cuinit(0);
  EXPECT_EQ(brief(run(check_compat, w)), Texts{});
  World a;
  a.gpu("NVIDIA A100-SXM4-80GB", "8.0").driver("550.120").libcuda("compat", "580.65.06", {"550"});
  EXPECT_EQ(brief(run(check_compat, a)), Texts{});
  World b;
  b.gpu("NVIDIA A100-SXM4-80GB", "8.0").driver("545.23").libcuda("compat", "580.65.06", {"550"});
  EXPECT_EQ(brief(run(check_compat, b)), Texts{"libcuda_shadowed/error/compat_branch"});
}

TEST(Compat, TellsAnUpdateWithoutRebootFromAForeignLibrary) {
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("550.120").libcuda("driver", "560.35.03");
  EXPECT_EQ(brief(run(check_compat, w)), Texts{"driver_lib_mismatch/error"});
  w.libcuda("driver", "550.120");  // the right one is there, behind the stale one
  EXPECT_EQ(brief(run(check_compat, w)), Texts{"libcuda_shadowed/error"});
  World c;
  c.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("550.120").libcuda("package", "560.35.03");
  c.facts.system.container = file<std::string>("docker", "/.dockerenv");
  EXPECT_EQ(brief(run(check_compat, c)), Texts{"libcuda_shadowed/error"});
  World s;
  s.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("550.120").libcuda("stub", "");
  EXPECT_EQ(brief(run(check_compat, s)), Texts{"libcuda_shadowed/error/stub"});
  World n;
  n.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("550.120").libcuda("driver", "550.120");
  EXPECT_EQ(brief(run(check_compat, n)), Texts{});
  n.facts.nvml.init_result = known(18, SourceKind::nvml, "nvmlInit_v2");
  EXPECT_EQ(brief(run(check_compat, n)), Texts{"driver_lib_mismatch/error"});
}

TEST(DriverAnswers, NamesACauseOnlyWhereTheFactsCarryIt) {
  auto answer = [](int code) {
    World w;
    w.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("550.120").cuinit(code);
    return w;
  };
  EXPECT_EQ(brief(run(check_driver_answers, answer(0))), Texts{});
  EXPECT_EQ(brief(run(check_driver_answers, answer(100))), Texts{"no_cuda_device/error"});
  EXPECT_EQ(brief(run(check_driver_answers, answer(999))),
            Texts{"driver_answer_unknown/error/cuda_999"});
  World suspended = answer(999);
  suspended.facts.kernel.log =
      file(std::vector<std::string>{"nvidia 0000:01:00.0: PM: resume"}, "dmesg");
  EXPECT_EQ(brief(run(check_driver_answers, suspended)), Texts{"uvm_stale_after_suspend/error"});
  World hmm = answer(3);
  EXPECT_EQ(brief(run(check_driver_answers, hmm)), Texts{"driver_answer_unknown/error"});
  hmm.facts.kernel.uvm_hmm_disabled =
      file(false, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm");
  EXPECT_EQ(brief(run(check_driver_answers, hmm)), Texts{"uvm_hmm_init_failure/error"});
  World lost = answer(0);
  lost.facts.nvml.init_result = known(15, SourceKind::nvml, "nvmlInit_v2");
  EXPECT_EQ(brief(run(check_driver_answers, lost)), Texts{"gpu_fell_off_bus/error"});
  World hung = answer(0);
  hung.facts.cuda.init_result =
      missing<int>(WhyNot::timeout, SourceKind::cuda, "cuInit", "no answer in 10 s");
  EXPECT_EQ(brief(run(check_driver_answers, hung)), Texts{"driver_probe_hung/error"});
  hung.facts.cuda.init_result.why = WhyNot::crashed;
  EXPECT_EQ(brief(run(check_driver_answers, hung)), Texts{"driver_probe_crashed/error"});
  hung.facts.cuda.init_result.why = WhyNot::not_asked;
  EXPECT_EQ(brief(run(check_driver_answers, hung)), Texts{});
}

TEST(DriverAnswers, AModuleWithoutItsLibraries) {
  World w;
  w.driver("535.183.01").facts.pci.value->push_back(pci_gpu(0, "2204"));
  w.facts.system.distribution_id = file<std::string>("ubuntu 22.04", "/etc/os-release");
  w.facts.cuda.library =
      missing<std::string>(WhyNot::not_present, SourceKind::cuda, "libcuda.so.1");
  std::vector<Finding> found = run(check_driver_answers, w);
  ASSERT_EQ(brief(found), Texts{"driver_libs_missing/error/ubuntu"});
  EXPECT_EQ(found[0].args["branch"], "535");

  World hidden = w;  // the file is there, the loader's cache does not know it
  hidden.libcuda("driver", "535.183.01");
  hidden.facts.driver_libraries[0].loads = false;
  EXPECT_EQ(brief(run(check_driver_answers, hidden)), Texts{"driver_libs_missing/error/unfound"});

  World stub = w;  // a toolkit's stub is no driver library
  stub.libcuda("stub", "");
  stub.facts.driver_libraries[0].loads = false;
  EXPECT_EQ(brief(run(check_driver_answers, stub)), Texts{"driver_libs_missing/error/ubuntu"});

  w.facts.system.container =
      file<std::string>("docker", "/.dockerenv");  // container_gpu.cc asks there
  EXPECT_EQ(brief(run(check_driver_answers, w)), Texts{});
}

TEST(Compute, EachCodeAsFarAsItProves) {
  auto result = [](const char* step, int code, const char* mode, bool busy) {
    World w;
    w.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("550.120").cuinit(0);
    facts::NvmlGpu& nvml = w.facts.nvml.gpus[0];
    nvml.compute_mode = known<std::string>(mode, SourceKind::nvml, "nvmlDeviceGetComputeMode");
    std::vector<facts::GpuProcess> processes;
    if (busy) processes.push_back({4242, "python3", {}, "compute"});
    nvml.processes = known(processes, SourceKind::nvml, "nvmlDeviceGetComputeRunningProcesses");
    facts::CudaDevice device;
    device.pci_address = nvml.pci_address;
    device.compute_check = known<std::string>(step, SourceKind::cuda, "compute check");
    device.compute_code = known(code, SourceKind::cuda, "compute check");
    w.facts.cuda.devices.push_back(device);
    return brief(run(check_compute, w));
  };
  EXPECT_EQ(result("ok", 0, "default", false), Texts{});
  EXPECT_EQ(result("context", 2, "default", false), Texts{"gpu_memory_exhausted/error/compute"});
  EXPECT_EQ(result("context", 2, "default", true), Texts{"gpu_memory_in_use/error/compute"});
  EXPECT_EQ(result("context", 46, "exclusive_process", true),
            Texts{"gpu_mode_config/error/exclusive_taken"});
  EXPECT_EQ(result("context", 46, "default", false), Texts{"compute_check_failed/error"});
  EXPECT_EQ(result("allocate", 214, "default", false), Texts{"gpu_memory_ecc/error/compute"});
  EXPECT_EQ(result("result", 0, "default", false),
            Texts{"compute_check_failed/error/wrong_result"});
}

}  // namespace driver_test
}  // namespace cufit::checks
