// SPDX-License-Identifier: Apache-2.0
// What the tables answer. Most rows are claims that popular guides get wrong.
#include <gtest/gtest.h>

#include "knowledge/knowledge.h"

namespace cufit::knowledge {
namespace lookups_test {

const Knowledge& tables() { return Knowledge::builtin(); }

std::string text(const std::optional<Version>& version) {
  return version ? version->text() : "unknown";
}

TEST(Wheels, TheNewestTorchIsOfTheTable) {
  const Version newest = Knowledge::builtin().newest_torch();
  size_t of_it = 0;
  for (const TorchRelease& row : Knowledge::builtin().torch_releases) {
    EXPECT_FALSE(newest < *parse_version(row.version)) << row.version;
    of_it += *parse_version(row.version) == newest ? 1 : 0;
  }
  EXPECT_EQ(of_it, 1u);
}

TEST(FindGpu, ByAnyUsualSpelling) {
  struct Row {
    const char *name, *found, *cc;
  };
  const Row rows[] = {
      {"GeForce RTX 3090", "GeForce RTX 3090", "8.6"},
      {"NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "8.6"},
      {"rtx 3090", "GeForce RTX 3090", "8.6"},
      {"RTX3090Ti", "GeForce RTX 3090 Ti", "8.6"},
      {"3090", "GeForce RTX 3090", "8.6"},
      {"RTX 4090", "GeForce RTX 4090", "8.9"},
      {"RTX 4090 Laptop", "GeForce RTX 4090 Laptop", "8.9"},
      {"NVIDIA GeForce RTX 4090 Laptop GPU", "GeForce RTX 4090 Laptop", "8.9"},
      {"NVIDIA H200", "H200 SXM", "9.0"},
      {"NVIDIA A100-SXM4-40GB", "A100 SXM4 40GB", "8.0"},
      {"NVIDIA GB10", "DGX Spark GB10", "12.1"},
      {"rtx 5090", "GeForce RTX 5090", "12.0"},
      {"gtx 1080 ti", "GeForce GTX 1080 Ti", "6.1"},
      {"Quadro RTX 6000", "Quadro RTX 6000", "7.5"},
  };
  for (const Row& row : rows) {
    const Gpu* gpu = tables().find_gpu(row.name);
    ASSERT_NE(gpu, nullptr) << row.name;
    EXPECT_EQ(gpu->name, row.found) << row.name;
    EXPECT_EQ(gpu->cc, row.cc) << row.name;
  }
}

TEST(FindGpu, ExportVersionsKeepTheirArchitecture) {
  // A widely copied table calls H800 a GA100 part.
  const std::pair<const char*, const char*> rows[] = {
      {"A800", "8.0"}, {"H800", "9.0"}, {"H20", "9.0"}, {"L20", "8.9"},
      {"A100", "8.0"}, {"H100", "9.0"}, {"T4", "7.5"},  {"V100", "7.0"}};
  for (const auto& [name, cc] : rows) {
    const Gpu* gpu = tables().find_gpu(name);
    ASSERT_NE(gpu, nullptr) << name;
    EXPECT_EQ(gpu->cc, cc) << name;
  }
}

TEST(FindGpu, AmbiguousOrUnknownNamesFindNothing) {
  for (const char* name :
       {"", "GPU", "NVIDIA", "RTX 6000", "NVIDIA RTX 6000", "TITAN X", "RTX 9999", "Radeon 7900",
        "4GB", "4 GiB", "141G"}) {
    EXPECT_EQ(tables().find_gpu(name), nullptr) << name;
  }
}

TEST(FindGpu, NearestNames) {
  const std::vector<std::string> driver = tables().nearest_gpus("4090 535", 3);
  ASSERT_FALSE(driver.empty());
  EXPECT_EQ(driver[0], "GeForce RTX 4090");
  const std::vector<std::string> near = tables().nearest_gpus("RTX 3099", 3);
  ASSERT_EQ(near.size(), 3u);
  EXPECT_EQ(near[0], "GeForce RTX 3090");
  for (const std::string& name : tables().nearest_gpus("RTX 6000", 4)) {
    EXPECT_NE(name.find("6000"), std::string::npos) << name;
  }
}

TEST(FindGpu, ByPciId) {
  struct Row {
    const char *id, *cc;
  };
  // 20f3 A800 SXM4, 2324 H800, 2204 RTX 3090; 220f is no product: the block GA102 answers.
  const Row rows[] = {{"2204", "8.6"}, {"20F3", "8.0"}, {"0x2324", "9.0"},
                      {"2335", "9.0"}, {"220f", "8.6"}, {"2e12", "12.1"},
                      {"ffff", ""},    {"22", ""},      {"", ""}};
  for (const Row& row : rows) EXPECT_EQ(tables().find_cc_by_pci(row.id), row.cc) << row.id;
  ASSERT_NE(tables().find_gpu_by_pci("2204"), nullptr);
  EXPECT_EQ(tables().find_gpu_by_pci("2204")->name, "GeForce RTX 3090");
  EXPECT_EQ(tables().find_gpu_by_pci("220f"), nullptr);
}

TEST(Drivers, BranchToCuda) {
  const std::pair<const char*, const char*> rows[] = {
      {"535.183.01", "12.2"}, {"535", "12.2"},       {"470.82.01", "11.4"}, {"550.54.15", "12.4"},
      {"565.57.01", "12.7"},  {"580.65.06", "13.0"}, {"595.45.04", "13.2"}, {"615.71.09", "13.4"},
      {"537.13", "12.2"},     {"390.157", "9.1"}};
  for (const auto& [driver, cuda] : rows)
    EXPECT_EQ(text(tables().driver_cuda(*parse_version(driver))), cuda) << driver;
}

TEST(Drivers, FamilyFloorIsNotTheToolkitsDriver) {
  EXPECT_EQ(text(tables().family_floor(11)), "450.80.2");
  EXPECT_EQ(text(tables().family_floor(12)), "525.60.13");
  EXPECT_EQ(text(tables().family_floor(13)), "580");
  EXPECT_EQ(text(tables().family_floor(10)), "unknown");
  const std::pair<const char*, const char*> rows[] = {
      {"12.4", "550.54.14"}, {"12.4.1", "550.54.15"}, {"12.8", "570.26"}, {"11.8", "520.61.5"},
      {"13.0.3", "unknown"}, {"13.4", "615"},         {"12.7", "unknown"}};
  for (const auto& [cuda, driver] : rows)
    EXPECT_EQ(text(tables().full_driver(*parse_version(cuda))), driver) << cuda;
}

TEST(Drivers, WindowOfACapability) {
  struct Row {
    ComputeCapability cc;
    uint32_t first, last;
    const char* module;
  };
  const Row rows[] = {{{3, 7}, 0, 470, "proprietary"}, {{6, 1}, 0, 580, "proprietary"},
                      {{7, 0}, 0, 580, "proprietary"}, {{8, 6}, 455, 0, "either"},
                      {{9, 0}, 520, 0, "either"},      {{12, 0}, 570, 0, "open"}};
  for (const Row& row : rows) {
    const DriverWindow* window = tables().find_window(row.cc);
    ASSERT_NE(window, nullptr) << row.cc.text();
    EXPECT_EQ(window->first_branch, row.first) << row.cc.text();
    EXPECT_EQ(window->last_branch, row.last) << row.cc.text();
    EXPECT_EQ(window->kernel_module, row.module) << row.cc.text();
  }
  EXPECT_EQ(tables().find_window({99, 0}), nullptr);
}

TEST(Ptx, FirstCudaThatKnowsTheIsa) {
  const std::pair<const char*, const char*> rows[] = {
      {"6.0", "9.0"},  {"7.0", "11.0"}, {"7.8", "11.8"}, {"8.5", "12.5"}, {"8.6", "12.7"},
      {"8.7", "12.8"}, {"8.8", "12.9"}, {"9.0", "13.0"}, {"9.1", "13.1"}, {"42.0", "unknown"}};
  for (const auto& [isa, cuda] : rows)
    EXPECT_EQ(text(tables().cuda_for_ptx(*parse_version(isa))), cuda) << isa;
}

TEST(Wheels, NewestForGpuAndDriver) {
  struct Row {
    ComputeCapability cc;
    const char *driver, *torch, *tag;
  };
  const Row rows[] = {
      {{6, 1}, "580.65.06", "2.14.1", "cu126"},  // Pascal: cu126 is the last family with its code
      {{7, 0}, "580.65.06", "2.14.1", "cu126"},  // Volta as well
      {{5, 2}, "535.183.01", "2.14.1", "cu126"},
      {{3, 7}, "470.82.01", "2.7.1", "cu118"},    // Kepler
      {{8, 6}, "470.82.01", "2.7.1", "cu118"},    // below 525: CUDA 11 only
      {{8, 6}, "525.60.13", "2.14.1", "cu126"},   // exactly the floor of CUDA 12
      {{8, 6}, "525.60.11", "2.7.1", "cu118"},    // just under it
      {{8, 6}, "535.183.01", "2.14.1", "cu126"},  // shows 12.2, and runs cu126
      {{8, 6}, "535", "2.14.1", "cu126"},
      {{8, 6}, "580.65.06", "2.15.0", "cu132"},  // CUDA 13 family, although the driver shows 13.0
      {{8, 9}, "595.45.04", "2.15.0", "cu132"},  // 8.9 runs 8.6 code
      {{9, 0}, nullptr, "2.15.0", "cu132"},
      {{12, 0}, "570.86.10", "2.13.0", "cu129"},  // Blackwell below 580: last cu129
      {{12, 1}, "575.57.08", "2.13.0", "cu129"},  // 12.1 runs 12.0 code
      {{12, 0}, "580", "2.15.0", "cu132"},
      {{10, 3}, nullptr, "2.15.0", "cu132"},  // 10.3 runs 10.0 code
  };
  for (const Row& row : rows) {
    std::optional<Version> driver;
    if (row.driver) driver = parse_version(row.driver);
    const std::optional<Knowledge::Pick> pick = tables().newest_wheel_for(row.cc, driver);
    ASSERT_TRUE(pick) << row.cc.text() << " " << (row.driver ? row.driver : "-");
    EXPECT_EQ(pick->torch, row.torch) << row.cc.text() << " " << (row.driver ? row.driver : "-");
    EXPECT_EQ(pick->tag, row.tag) << row.cc.text() << " " << (row.driver ? row.driver : "-");
  }
  EXPECT_FALSE(tables().newest_wheel_for(
      {12, 0}, parse_version("470.82.01")));                      // no CUDA 11 wheel has 12.0 code
  EXPECT_FALSE(tables().newest_wheel_for({3, 5}, std::nullopt));  // 3.7 code does not run on 3.5
  EXPECT_FALSE(tables().newest_wheel_for({8, 7}, std::nullopt));  // Jetson takes only its own code
  EXPECT_FALSE(tables().newest_wheel_for({99, 0}, std::nullopt));
}

TEST(Wheels, ReleasesAndVariants) {
  ASSERT_NE(tables().find_torch("2.11.0+cu130"), nullptr);
  EXPECT_EQ(tables().find_torch("2.11.0+cu130")->default_linux_x86_64, "cu130");
  EXPECT_EQ(tables().find_torch("2.10.0")->default_linux_x86_64, "cu128");
  EXPECT_EQ(tables().find_torch("2.11"), nullptr);
  EXPECT_EQ(tables().wheels_of("2.14.1").size(), 3u);
  EXPECT_TRUE(tables().wheels_of("0.4.1").empty());
  ASSERT_NE(tables().find_cuda_tag("cu118"), nullptr);
  EXPECT_EQ(tables().find_cuda_tag("cu118")->last_torch, "2.7");
  EXPECT_EQ(tables().find_cuda_tag("cu999"), nullptr);
}

TEST(Codes, NamesAndRootCauses) {
  ASSERT_NE(tables().find_cuda_code(804), nullptr);
  EXPECT_EQ(tables().find_cuda_code(804)->name, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE");
  EXPECT_EQ(tables().find_cuda_code(12345), nullptr);
  ASSERT_NE(tables().find_nvml_code(18), nullptr);
  EXPECT_EQ(tables().find_nvml_code(18)->name, "NVML_ERROR_LIB_RM_VERSION_MISMATCH");
  const std::pair<uint32_t, const char*> rows[] = {
      {79, "gpu_fell_off_bus"}, {48, "gpu_memory_ecc"},
      {63, "gpu_memory_ecc"},   {94, "gpu_memory_ecc"},
      {95, "gpu_memory_ecc"},   {74, "nvlink_error"},
      {150, "nvlink_error"},    {119, "gsp_firmware_hang"},
      {31, "app_kernel_fault"}, {154, ""}};
  for (const auto& [number, finding] : rows) {
    ASSERT_NE(tables().find_xid(number), nullptr) << number;
    EXPECT_EQ(tables().find_xid(number)->finding, finding) << number;
  }
}

TEST(Texts, MissingKeys) {
  EXPECT_EQ(tables().message("no.such.key", "en"), "");
  EXPECT_EQ(tables().find_texts("no_such_finding"), nullptr);
}

TEST(OwnCode, TegraUpToOrinAndNoOtherBoard) {
  for (const char* cc : {"3.2", "5.3", "6.2", "7.2", "8.7"})
    EXPECT_TRUE(tables().has_own_code(*parse_compute_capability(cc))) << cc;
  for (const char* cc : {"3.0", "5.2", "6.1", "7.5", "8.6", "8.9", "9.0", "11.0", "12.1"})
    EXPECT_FALSE(tables().has_own_code(*parse_compute_capability(cc))) << cc;
  EXPECT_FALSE(tables().newest_wheel_for({8, 7}, std::nullopt));
  EXPECT_TRUE(tables().newest_wheel_for({8, 6}, std::nullopt));
}

TEST(OwnCode, ARowMakesItSo) {
  static constexpr OwnCodeRow own[] = {{"8.6"}};
  Knowledge changed = tables();
  changed.own_code = own;
  EXPECT_TRUE(changed.has_own_code({8, 6}));
  EXPECT_FALSE(changed.has_own_code({8, 7}));
  EXPECT_FALSE(changed.newest_wheel_for({8, 6}, std::nullopt));
  EXPECT_TRUE(changed.newest_wheel_for({8, 7}, std::nullopt));
}

TEST(Families, ByTheirRows) {
  static constexpr ArchFamilyRow families[] = {{"10.0", "10.3"}};
  static constexpr RenumberedArchRow renumbered[] = {{"10.1", "11.0"}};
  const Knowledge small{.arch_families = families, .renumbered_archs = renumbered};
  EXPECT_TRUE(small.in_family({10, 0}, {10, 3}));
  EXPECT_TRUE(small.in_family({12, 0}, {12, 0}));
  EXPECT_FALSE(small.in_family({12, 0}, {12, 1}));
  EXPECT_FALSE(small.in_family({10, 3}, {10, 0}));
  EXPECT_TRUE(small.in_family({10, 1}, {11, 0}));
  EXPECT_TRUE(small.in_family({11, 0}, {10, 1}));
  EXPECT_EQ(small.renumbered({10, 1}), (ComputeCapability{11, 0}));
  EXPECT_EQ(small.renumbered({10, 0}), (ComputeCapability{10, 0}));
}

TEST(Workspaces, OfCublasByCapability) {
  static constexpr CublasWorkspaceRow cublas[] = {{"0.0", "8.9", 100, 100, "source"},
                                                  {"9.0", "9.0", 300, 400, "measured"},
                                                  {"9.1", "99.9", 300, 300, "bound"}};
  static constexpr CublasltWorkspaceRow cublaslt[] = {{"2.0", "2.11", 50, "measured"},
                                                      {"2.12", "2.99", 0, "source"}};
  const Knowledge small{.cublas_workspaces = cublas, .cublaslt_workspaces = cublaslt};
  EXPECT_EQ(small.find_cublas_workspace({8, 9}), &cublas[0]);
  EXPECT_EQ(small.find_cublas_workspace({9, 0}), &cublas[1]);
  EXPECT_EQ(small.find_cublas_workspace({12, 0}), &cublas[2]);
  EXPECT_EQ(small.cublas_workspace_sizes(), (std::vector<uint64_t>{100, 300, 50}));
  EXPECT_EQ(Knowledge{}.find_cublas_workspace({9, 0}), nullptr);
}

TEST(SmallWorld, ATestCanBringItsOwnRows) {
  static constexpr BranchRow branches[] = {{535, "12.2"}};
  const Knowledge small{.branches = branches};
  EXPECT_EQ(text(small.driver_cuda(*parse_version("600.1"))), "12.2");
  EXPECT_EQ(text(small.driver_cuda(*parse_version("470.1"))), "unknown");
}

// As lspci, nvidia-smi and shops write them.
TEST(Lookups, NamesOfOthersAreUnderstood) {
  const std::pair<const char*, const char*> k_names[] = {
      {"GA106 [GeForce RTX 3060 Lite Hash Rate] (rev a1)", "GeForce RTX 3060 8GB"},
      {"RTX 3060 Lite Hash Rate", "GeForce RTX 3060 8GB"},
      {"GeForce RTX\xE2\x84\xA2 4090", "GeForce RTX 4090"},
      {"NVIDIA\xC2\xAE GeForce RTX\xE2\x84\xA2 3060 12G", "GeForce RTX 3060 12GB"},
      {"RTX 3060 12 GB GDDR6", "GeForce RTX 3060 12GB"},
      {"GT 1030", "GeForce GT 1030"},
      {"MX450", "GeForce MX450"},
      {"Quadro P620", "Quadro P620"},
      {"RTX 4090 48GB", "GeForce RTX 4090 48GB (modified)"},
      {"2080 Ti 22G", "GeForce RTX 2080 Ti 22GB (modified)"},
      {"RTX 4090", "GeForce RTX 4090"},
      {"A100X", "A100X"},
      {"CMP 90HX", "CMP 90HX"},
      {"RTX 500 Ada", "RTX 500 Ada Laptop"},
  };
  for (const auto& [name, row] : k_names) {
    const Gpu* found = tables().find_gpu(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->name, row) << name;
  }
}

TEST(Lookups, ANameThatLeavesTheMemoryOpenMeansAllSizes) {
  const auto names = [](const char* name) {
    std::vector<std::string> out;
    for (const Gpu* gpu : tables().gpus_meant(name)) out.emplace_back(gpu->name);
    return out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("RTX 3060"), (Names{"GeForce RTX 3060 8GB", "GeForce RTX 3060 12GB"}));
  EXPECT_EQ(names("GTX 1060"), (Names{"GeForce GTX 1060 3GB", "GeForce GTX 1060 6GB"}));
  EXPECT_EQ(names("RTX 2060"), (Names{"GeForce RTX 2060", "GeForce RTX 2060 12GB"}));
  EXPECT_EQ(names("RTX 3060 12GB"), (Names{"GeForce RTX 3060 12GB"}));
  EXPECT_EQ(names("RTX 4090"), (Names{"GeForce RTX 4090"}));
  EXPECT_EQ(names("RTX 3080"), (Names{"GeForce RTX 3080 10GB", "GeForce RTX 3080 12GB"}));
  EXPECT_EQ(names("no such card"), Names{});
}

}  // namespace lookups_test
}  // namespace cufit::knowledge
