// SPDX-License-Identifier: Apache-2.0
// Device code against GPU, extensions, builds, mixed machines: the acceptance cases that tables get
// wrong.
#include <gtest/gtest.h>

#include "checks/machine_checks.h"
#include "checks/torch_checks.h"
#include "checks/torch_env.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace torch_test {

using namespace world;

struct CodeCase {
  const char* what;
  const char* gpu;
  const char* cc;
  const char* driver;
  std::vector<formats::DeviceCode> code;
  Texts want;
};

TEST(GpuCode, TheFileDecides) {
  const Texts ok, old_gpu{"arch_gpu_too_old/error"}, new_gpu{"arch_gpu_too_new/error"};
  const CodeCase cases[] = {
      {"sm_89 runs sm_86 code", "NVIDIA GeForce RTX 4090", "8.9", "580.95.05", k_cu130, ok},
      {"sm_103 on sm_100f", "NVIDIA B300", "10.3", "580.95.05", {cubin("90"), cubin("100f")}, ok},
      {"sm_103 on sm_100a",
       "NVIDIA B300",
       "10.3",
       "580.95.05",
       {cubin("90"), cubin("100a")},
       new_gpu},
      {"PTX of 90a does not go to sm_100",
       "NVIDIA B200",
       "10.0",
       "580.95.05",
       {cubin("90"), ptx("90a", "8.0")},
       new_gpu},
      {"V100 on cu130", "Tesla V100-SXM2-16GB", "7.0", "580.95.05", k_cu130, old_gpu},
      {"Pascal on cu128",
       "NVIDIA GeForce GTX 1080 Ti",
       "6.1",
       "580.95.05",
       {cubin("70"), cubin("75"), cubin("120")},
       old_gpu},
      {"Blackwell on cu126", "NVIDIA GeForce RTX 5090", "12.0", "580.95.05", k_cu126, new_gpu},
      {"PTX 12.0 serves sm_121",
       "NVIDIA GB10",
       "12.1",
       "580.95.05",
       {cubin("90"), ptx("120", "8.8")},
       {"ptx_jit_only/warning"}},
      {"ISA of 12.9 on a 535 driver",
       "NVIDIA H100 PCIe",
       "9.0",
       "535.183.01",
       {cubin("86"), ptx("90", "8.8")},
       {"ptx_newer_than_driver/error"}},
      {"GB10 runs sm_120 code", "NVIDIA GB10", "12.1", "580.95.05", k_cu130, ok},
  };
  for (const CodeCase& one : cases) {
    World w;
    w.gpu(one.gpu, one.cc).driver(one.driver).env(torch_env("9.9.9", "cu130", "13.0", one.code));
    EXPECT_EQ(brief(run(check_gpu_code, w)), one.want) << one.what;
  }
}

TEST(GpuCode, V100GetsTheSameReleaseInTheVariantThatServesIt) {
  World w;
  w.gpu("Tesla V100-SXM2-16GB", "7.0")
      .driver("580.95.05")
      .env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  for (Finding& one : run(check_gpu_code, w)) {
    if (one.id != "arch_gpu_too_old") continue;
    EXPECT_EQ(one.args["last_tag"], "cu126");
    EXPECT_EQ(one.args["last_torch"], "2.11.0");
    EXPECT_EQ(one.args["cc"], "7.0");
    return;
  }
  FAIL() << "no arch_gpu_too_old";
}

TEST(GpuCode, TheWheelExistsForTheEnvironmentsPython) {
  World w;
  facts::PythonEnv env = torch_env("9.9.9", "cu130", "13.0", k_cu130);
  env.python = file<std::string>("3.9.18", "pyvenv.cfg");  // 2.9 and later need 3.10
  w.gpu("Tesla V100-SXM2-16GB", "7.0").driver("580.95.05").env(env);
  std::vector<Finding> found = run(check_gpu_code, w);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].args["last_torch"], "2.8.0");
}

TEST(GpuCode, JetsonPartsTakeOnlyTheirOwnCode) {
  for (const char* cc : {"8.7", "7.2"}) {
    World w;
    w.gpu("Orin", cc).driver("540.3.0").env(torch_env("9.9.9", "cu126", "12.6", k_cu126));
    std::vector<Finding> found = run(check_gpu_code, w);
    ASSERT_EQ(found.size(), 1u) << cc;
    EXPECT_EQ(found[0].id, "arch_gpu_too_old") << cc;
  }
}

TEST(GpuCode, UnreadableFileFallsBackToTheTableAndSaysSo) {
  World w;
  w.gpu("Tesla V100-SXM2-16GB", "7.0")
      .driver("580.95.05")
      .env(torch_env("2.11.0", "cu130", "13.0", {}));
  std::vector<Finding> found = run(check_gpu_code, w);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "arch_gpu_too_old");
  ASSERT_GE(found[0].evidence.size(), 2u);
  EXPECT_EQ(found[0].evidence[1].kind, "table");
  World u;
  u.gpu("Tesla V100-SXM2-16GB", "7.0")
      .driver("580.95.05")
      .env(torch_env("9.9.9", "cu130", "13.0", {}));
  EXPECT_EQ(brief(run(check_gpu_code, u)), Texts{"torch_code_unreadable/unknown"});
}

TEST(GpuCode, DamageMakesNothingFoundUnknown) {
  World w;
  facts::PythonEnv env = torch_env("9.9.9", "cu130", "13.0", {cubin("75")});
  env.binaries[0].damage.push_back({4096, "the file ends inside an entry"});
  w.gpu("NVIDIA H200", "9.0").driver("580.95.05").env(env);
  EXPECT_EQ(brief(run(check_gpu_code, w)), Texts{"arch_gpu_too_new/unknown"});
}

TEST(GpuCode, FileAndTableDiffer) {
  World w;  // the table says that 2.11.0+cu130 has PTX or not; a file with 7.5 only agrees with no
            // row
  w.gpu("NVIDIA GeForce RTX 2080 Ti", "7.5")
      .driver("580.95.05")
      .env(torch_env("2.11.0", "cu130", "13.0", {cubin("75")}));
  EXPECT_EQ(brief(run(check_gpu_code, w)), Texts{"torch_wheel_table_differs/note"});
}

TEST(GpuCode, ASideLibraryWithoutCodeIsANote) {
  World w;
  w.gpu("Tesla T4", "7.5").driver("580.95.05").env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  facts::Binary linalg =
      extension("torch", "torch/lib/libtorch_cuda_linalg.so", {cubin("80"), cubin("90")});
  w.facts.envs[0].binaries.push_back(linalg);
  std::vector<Finding> found = run(check_gpu_code, w);
  ASSERT_EQ(brief(found), Texts{"torch_library_code_missing/note"});
  EXPECT_EQ(found[0].args["archs"], "sm_80 sm_90");

  // Some kernels for the GPU beside many others are meant so, and a damaged file proves nothing.
  formats::DeviceCode few = cubin("75");
  few.count = 1;
  w.facts.envs[0].binaries.back().device_code.push_back(few);
  EXPECT_EQ(brief(run(check_gpu_code, w)), Texts{});
  linalg.damage.push_back({4096, "cut short"});
  w.facts.envs[0].binaries.back() = linalg;
  EXPECT_EQ(brief(run(check_gpu_code, w)), Texts{});
}

// A file that the loader refuses is never "works", and the table of wheels does not stand in for
// it.
TEST(TorchInstall, DamagedFilesAreNamedWithTheirByte) {
  struct Row {
    uint64_t offset;
    bool has_code, is_elf;
    Texts findings;
  };
  const Row rows[] = {
      {5000,
       false,
       true,
       {"torch_code_unreadable/unknown", "torch_install_broken/error/damaged_file"}},
      {5000, true, true, {"torch_install_broken/error/damaged_file"}},
      {400, true, true, {"torch_install_broken/warning/damaged_file"}},  // inside the file: the
                                                                         // loader may never look
      {0,
       false,
       false,
       {"torch_code_unreadable/unknown", "torch_install_broken/error/damaged_file"}},
  };
  for (const Row& row : rows) {
    World w;
    w.gpu("NVIDIA H200", "9.0")
        .driver("580.95.05")
        .env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
    facts::Binary& library = w.facts.envs[0].binaries[0];
    library.size_bytes = 4096;
    library.damage.push_back({row.offset, "cut short"});
    if (!row.has_code) library.device_code.clear();
    if (!row.is_elf) library.unreadable = "not an ELF file";
    std::vector<Finding> found = run(check_gpu_code, w), install = run(check_torch_install, w);
    found.insert(found.end(), install.begin(), install.end());
    EXPECT_EQ(brief(found), row.findings) << row.offset;
    ASSERT_EQ(install.size(), 1u);
    EXPECT_NE(install[0].evidence[0].value.find("(byte " + std::to_string(row.offset) + ")"),
              std::string::npos);
    EXPECT_NE(install[0].args["command"].find("--force-reinstall --no-deps"), std::string::npos);
    EXPECT_EQ(keep_root_causes(found).size(), 1u);
  }
}

TEST(TorchInstall, AVersionFileThatContradictsTheRecord) {
  World w;
  w.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  w.facts.envs[0].torch.version =
      file<std::string>("2.11.0", "version.py");  // without the tag: the same release
  EXPECT_EQ(brief(run(check_torch_install, w)), Texts{});
  w.facts.envs[0].torch.version = file<std::string>("2.3.0+cu118", "version.py");
  EXPECT_EQ(brief(run(check_torch_install, w)),
            Texts{"torch_install_broken/warning/versions_differ"});
}

TEST(TorchBuild, AFolderThatMayNotBeListedIsNoMissingTorch) {
  World w;
  facts::PythonEnv env;
  env.path = "/env";
  env.torch.version =
      missing<std::string>(WhyNot::no_permission, SourceKind::file, "/env/site-packages");
  w.gpu("NVIDIA H200", "9.0").driver("580.95.05").env(env);
  EXPECT_EQ(brief(run(check_torch_build, w)), Texts{"torch_not_installed/unknown/closed"});
  EXPECT_EQ(checks::examine(w.facts, knowledge::Knowledge::builtin()).verdict, LinkState::unknown);
}

TEST(TorchInstall, AFileThatMayNotBeReadIsNoDamagedOne) {
  World w;
  w.gpu("NVIDIA H200", "9.0")
      .driver("580.95.05")
      .env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  facts::Binary& library = w.facts.envs[0].binaries[0];
  library.device_code.clear();
  library.unreadable = "permission denied";
  EXPECT_EQ(brief(run(check_torch_install, w)), Texts{});
  EXPECT_EQ(brief(run(check_gpu_code, w)), Texts{});  // the table spoke, and the link says so
}

TEST(BuildTools, AnotherMajorOfNvccIsANote) {
  World w;
  w.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  facts::Toolkit toolkit;
  toolkit.path = "/usr/local/cuda-12.4";
  toolkit.version = file<std::string>("12.4.1", "/usr/local/cuda-12.4/version.json");
  toolkit.nvcc =
      file<std::string>("/usr/local/cuda-12.4/bin/nvcc", "/usr/local/cuda-12.4/bin/nvcc");
  w.facts.toolkits.push_back(toolkit);
  EXPECT_EQ(brief(run(check_build_tools, w)), Texts{"ext_build_cuda_mismatch/note"});
  w.facts.toolkits[0].version =
      file<std::string>("13.1", "cuda.h");  // torch only warns of another minor
  EXPECT_EQ(brief(run(check_build_tools, w)), Texts{});
  w.facts.toolkits[0] = toolkit;
  w.facts.toolkits[0].nvcc =
      missing<std::string>(WhyNot::not_present, SourceKind::file, "bin/nvcc");
  EXPECT_EQ(brief(run(check_build_tools, w)), Texts{});
}

TEST(GpuCode, UnknownCapabilityIsSaid) {
  World w;
  w.driver("580.95.05").env(torch_env("9.9.9", "cu130", "13.0", k_cu130));
  facts::NvmlGpu gpu;
  gpu.compute_capability = missing<std::string>(WhyNot::not_supported, SourceKind::nvml,
                                                "nvmlDeviceGetCudaComputeCapability");
  w.facts.nvml.gpus.push_back(gpu);
  EXPECT_EQ(brief(run(check_gpu_code, w)), Texts{"gpu_capability_unknown/unknown"});
}

TEST(MixedGpus, NoSingleWheelForPascalAndBlackwell) {
  World w;
  w.gpu("NVIDIA GeForce GTX 1080 Ti", "6.1")
      .gpu("NVIDIA GeForce RTX 5090", "12.0")
      .driver("580.95.05");
  w.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  std::vector<Finding> found = run(check_mixed_gpus, w);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].variant, "kernel_module");
  EXPECT_EQ(found[0].args["indices_a"], "1");
  EXPECT_NE(found[0].args["install_b"].find("cu126"), std::string::npos);
  World same;
  same.gpu("NVIDIA GeForce RTX 3090", "8.6")
      .gpu("NVIDIA GeForce RTX 5090", "12.0")
      .driver("580.95.05");
  same.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  EXPECT_EQ(brief(run(check_mixed_gpus, same)), Texts{});
}

TEST(TorchBuild, CpuBuildMattersOnlyWithAGpu) {
  World w;
  w.gpu("NVIDIA H200", "9.0").driver("580.95.05").env(torch_env("2.11.0", "cpu", "", {}));
  EXPECT_EQ(brief(run(check_torch_build, w)), Texts{"torch_not_cuda_build/error/cpu"});
  World none;
  none.env(torch_env("2.11.0", "cpu", "", {}));
  EXPECT_EQ(brief(run(check_torch_build, none)), Texts{});
  World empty;
  empty.gpu("NVIDIA H200", "9.0");
  EXPECT_EQ(brief(run(check_torch_build, empty)), Texts{"torch_not_installed/warning/no_env"});
}

TEST(TorchBuild, TheProjectSaysWhichTorchItWants) {
  facts::PythonEnv system;
  system.path = "/usr";
  system.kind = "system";
  system.found_by = "PATH";
  system.active = true;
  system.python = file<std::string>("3.12.3", "/usr");
  system.interpreter = file<std::string>("/usr/bin/python3", "/usr");
  system.torch.version = missing<std::string>(WhyNot::not_present, SourceKind::file, "/usr");
  World w;
  w.gpu("NVIDIA H200", "9.0").driver("580.95.05").env(system);
  const auto step = [&] {
    const std::vector<Finding> found = run(check_torch_build, w);
    return found.empty() ? std::string() : found[0].args.at("install");
  };
  EXPECT_NE(step().find("torch=="), std::string::npos);
  w.facts.system.project_lock = file<std::string>("requirements.txt", "./requirements.txt");
  EXPECT_NE(step().find("torch=="), std::string::npos);  // its wheels need not fit this GPU
  w.facts.system.project_lock = file<std::string>("pixi.lock", "./pixi.lock");
  EXPECT_EQ(step(), "pixi install");
  w.facts.system.project_lock = file<std::string>("uv.lock", "./uv.lock");
  EXPECT_NE(step().find("torch=="), std::string::npos);  // uv is not here
  w.facts.system.uv = file<std::string>("/usr/bin/uv", "/usr/bin/uv");
  EXPECT_EQ(step(), "uv sync");
}

TEST(MainEnv, TheProjectsOwnGoesBeforeASystemsPython) {
  facts::Facts facts;
  facts.envs.resize(2);
  facts.envs[0].path = "/usr", facts.envs[0].kind = "system", facts.envs[0].found_by = "PATH";
  facts.envs[0].active = true;
  facts.envs[1].path = "/p/.pixi/envs/default", facts.envs[1].kind = "conda";
  facts.envs[1].found_by = "default";
  EXPECT_EQ(main_env(facts), &facts.envs[1]);
  facts.envs[0].found_by = "VIRTUAL_ENV";  // somebody chose it
  EXPECT_EQ(main_env(facts), &facts.envs[0]);
}

struct ExtensionCase {
  const char* what;
  std::vector<facts::Binary> files;
  Texts want;
};

TEST(Extensions, EachKindOfMismatch) {
  facts::Binary good = extension("flash-attn", "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so",
                                 {cubin("80"), cubin("90")});
  good.python_tag = "cpython-312";
  facts::Binary symbols = good;
  symbols.unresolved = {"_ZN3c105ErrorC2ENS_14SourceLocationESs"};
  symbols.unresolved_count = 1;
  facts::Binary python = good;
  python.python_tag = "cpython-310";
  facts::Binary major = good;
  major.needed.push_back("libcudart.so.12");
  facts::Binary hopper = extension("flash-attn", "flash_attn_3.abi3.so", {cubin("90a")});
  hopper.python_tag = "abi3";
  facts::Binary bnb12 = extension("bitsandbytes", "libbitsandbytes_cuda126.so", {cubin("50")});
  bnb12.needed = {"libcudart.so.12"};
  facts::Binary bnb13 = extension("bitsandbytes", "libbitsandbytes_cuda130.so", {cubin("80")});
  bnb13.needed = {"libcudart.so.13"};
  const ExtensionCase cases[] = {
      {"fits", {good}, {}},
      {"undefined symbols", {symbols}, {"ext_abi_mismatch/error"}},
      {"other Python", {python}, {"ext_abi_mismatch/error/python"}},
      {"two Pythons side by side", {python, good}, {}},
      {"other CUDA major", {major}, {"ext_cuda_major_mismatch/error"}},
      {"no code for 8.9", {hopper}, {"ext_arch_missing/warning"}},
      {"special kernels of another GPU", {good, hopper}, {"ext_arch_missing/note/partly"}},
      {"one library per CUDA version", {bnb12, bnb13}, {}},
      {"only the other CUDA version", {bnb12}, {"ext_cuda_major_mismatch/error"}},
  };
  for (const ExtensionCase& one : cases) {
    World w;
    facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", k_cu130);
    env.binaries.insert(env.binaries.end(), one.files.begin(), one.files.end());
    w.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("580.95.05").env(env);
    EXPECT_EQ(brief(run(check_extensions, w)), one.want) << one.what;
  }
}

// bitsandbytes loads the library of torch's CUDA alone: code that another one lacks is no finding.
TEST(Extensions, OfOneLibraryPerCudaTorchsOwnCounts) {
  facts::Binary own = extension("bitsandbytes", "libbitsandbytes_cuda126.so", {cubin("61")});
  facts::Binary newer = extension("bitsandbytes", "libbitsandbytes_cuda128.so", {cubin("75")});
  const auto said = [&](const char* tag, const char* cuda) {
    World w;
    facts::PythonEnv env = torch_env("2.7.0", tag, cuda, {cubin("61")});
    env.binaries.push_back(own), env.binaries.push_back(newer);
    w.gpu("NVIDIA GeForce GTX 1080", "6.1").driver("580.95.05").env(env);
    return brief(run(check_extensions, w));
  };
  EXPECT_EQ(said("cu126", "12.6"), Texts{});
  EXPECT_EQ(said("cu128", "12.8"), Texts{"ext_arch_missing/warning"});
}

TEST(Extensions, UnknownPythonIsUnknown) {
  facts::Binary binary =
      extension("flash-attn", "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so");
  binary.python_tag = "cpython-312";
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", k_cu130);
  env.python = missing<std::string>(WhyNot::not_present, SourceKind::file, "pyvenv.cfg");
  env.binaries.push_back(binary);
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9").env(env);
  EXPECT_EQ(brief(run(check_extensions, w)), Texts{"ext_abi_mismatch/unknown"});
}

}  // namespace torch_test
}  // namespace cufit::checks
