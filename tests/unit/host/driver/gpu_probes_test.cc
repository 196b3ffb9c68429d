// SPDX-License-Identifier: Apache-2.0
// The probes of everything NVIDIA on a machine: PCI, kernel driver, user-mode libraries.
#include "host/probe.h"

#include <gtest/gtest.h>

#include "support/machines.h"

namespace cufit::host {
namespace gpu_probes_test {

using test::Card;
using test::FakeRoot;

facts::Facts read(const FakeRoot& root, std::map<std::string, std::string> variables = {}) {
  facts::Facts facts;
  RealHost host = root.host(std::move(variables));
  read_system(host, facts);
  read_pci(host, facts);
  read_kernel_driver(host, facts);
  read_driver_libraries(host, facts);
  return facts;
}

const facts::DeviceNode* node(const facts::Facts& facts, const std::string& path) {
  for (const facts::DeviceNode& each : facts.kernel.nodes)
    if (each.path == path) return &each;
  return nullptr;
}

const facts::DriverLibrary* library(const facts::Facts& facts, const std::string& path) {
  for (const facts::DriverLibrary& each : facts.driver_libraries)
    if (each.path == path) return &each;
  return nullptr;
}

TEST(Pci, ReadsAGraphicsCard) {
  FakeRoot root;
  test::add_card(root, Card{});
  root.file("/sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n");
  facts::Facts facts = read(root);
  ASSERT_TRUE(facts.pci);
  ASSERT_EQ(facts.pci->size(), 1u);
  const facts::PciGpu& gpu = facts.pci->front();
  EXPECT_EQ(gpu.address, "0000:01:00.0");
  EXPECT_EQ(gpu.device_id, "2204");
  EXPECT_EQ(gpu.subsystem_id, "10de:147d");
  EXPECT_EQ(gpu.class_code, "0300");
  EXPECT_EQ(gpu.driver.value, "nvidia");
  EXPECT_EQ(gpu.link_speed.value, "8.0 GT/s PCIe");
  EXPECT_EQ(gpu.link_speed_max.value, "16.0 GT/s PCIe");
  EXPECT_EQ(gpu.link_width.value, 8u);
  EXPECT_EQ(gpu.link_width_max.value, 16u);
  EXPECT_EQ(gpu.bar1_bytes.value, 256u << 20);
}

TEST(Pci, TakesGpusAndSwitchesOnly) {
  struct Case {
    const char *device, *class_code;
    bool wanted;
  } cases[] = {{"0x2330", "0x030200", true},  {"0x22a3", "0x068000", true},
               {"0x0373", "0x068000", false}, {"0x1aef", "0x040300", false},
               {"0x1ad8", "0x0c8000", false}, {"", "", false}};
  for (const Case& each : cases) {
    FakeRoot root;
    Card card;
    card.device = each.device;
    card.class_code = each.class_code;
    test::add_card(root, card);
    EXPECT_EQ(read(root).pci->size(), each.wanted ? 1u : 0u) << each.device;
  }
}

TEST(Pci, SeesACardOfAmd) {
  for (const auto& [vendor, class_code, seen] : {std::tuple("0x1002", "0x030000", true),
                                                 {"0x1002", "0x120000", true},
                                                 {"0x1002", "0x040300", false},
                                                 {"0x8086", "0x030000", false}}) {
    FakeRoot root;
    Card card;
    card.class_code = class_code;
    test::add_card(root, card);
    root.file("/sys/bus/pci/devices/" + card.address + "/vendor", std::string(vendor) + "\n");
    const facts::Facts facts = read(root);
    EXPECT_TRUE(facts.pci->empty());
    EXPECT_EQ(facts.system.other_gpu.value_or(""), seen ? "AMD" : "") << vendor << class_code;
  }
}

TEST(Pci, FindsTheMemoryWindowByItsSlot) {
  const std::string none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  const std::string registers = "0x00000000fb000000 0x00000000fbffffff 0x0000000000040200\n";
  const std::string wide_registers = "0x0000004042000000 0x0000004042ffffff 0x000000000014220c\n";
  const std::string large = "0x0000002000000000 0x0000003fffffffff 0x000000000014220c\n";
  const std::string small = "0x0000007fe0000000 0x0000007fe1ffffff 0x000000000014220c\n";
  const std::string unset = "0x0000000000000000 0x0000001fffffffff 0x000000002014220c\n";
  struct Case {
    const char* name;
    std::string windows;
    std::optional<uint64_t> bytes;
  } cases[] = {
      {"Hopper, 128 GiB", wide_registers + none + large + none + small + none, 128ull << 30},
      {"window without room, cleared", registers + none + none + small, 0},
      {"window without room, marked", registers + unset + none + small, 0},
      {"Hopper without room", wide_registers + none + none + none + small, 0},
      {"truncated", registers, std::nullopt},
      {"nonsense", "what\n", std::nullopt},
      {"empty", "", std::nullopt},
  };
  for (const Case& each : cases) {
    FakeRoot root;
    Card card;
    card.windows = each.windows;
    test::add_card(root, card);
    EXPECT_EQ(read(root).pci->front().bar1_bytes.value, each.bytes) << each.name;
  }
}

TEST(Pci, ADeviceThatDoesNotAnswerHasNoLink) {
  FakeRoot root;
  test::add_card(root, Card{});
  root.file("/sys/bus/pci/devices/0000:01:00.0/current_link_speed", "Unknown\n");
  root.file("/sys/bus/pci/devices/0000:01:00.0/current_link_width", "63\n");
  const facts::PciGpu gpu = read(root).pci->front();
  EXPECT_EQ(gpu.link_speed.why, WhyNot::not_supported);
  EXPECT_FALSE(gpu.link_width);
  EXPECT_TRUE(gpu.link_width_max);
}

TEST(Pci, MissingSysfsIsNotAnEmptyBus) {
  FakeRoot root;
  EXPECT_FALSE(read(root).pci);
  root.folder("/sys/bus/pci/devices");
  EXPECT_TRUE(read(root).pci);
}

TEST(KernelDriver, ReadsAProprietary535) {
  FakeRoot root;
  test::add_proc(root);
  test::add_bare_host(root);
  test::add_glibc(root);
  test::add_card(root, Card{});
  test::add_module(root, "535.183.01", false);
  test::add_library(root, "/usr/lib/x86_64-linux-gnu", "535.183.01");
  root.file("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n");
  root.file("/lib/modules/6.1.0-26-amd64/modules.dep",
            "kernel/a.ko: updates/dkms/nvidia.ko.xz\nupdates/dkms/nvidia-uvm.ko.xz: "
            "updates/dkms/nvidia.ko.xz\n"
            "kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko: kernel/v.ko\n"
            "updates/dkms/nvidia-current.ko.xz: kernel/drivers/gpu/drm/drm.ko\n");
  root.file("/lib/modules/6.1.0-26-amd64/updates/dkms/nvidia-current.ko.xz", "x");
  root.file("/var/lib/dpkg/status",
            "Package: nvidia-driver\nStatus: deinstall ok config-files\nVersion: 550.1.1-1\n\n"
            "Package: nvidia-kernel-dkms\nStatus: install ok installed\nVersion: "
            "1:535.183.01-1~deb12u1\n\n"
            "Package: libcuda1\nStatus: install ok installed\nVersion: 560.35.03-1\n\n");
  for (const char* path : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-modeset"}) {
    root.file(path, "").mode(path, 0666);
  }
  root.file("/dev/kmsg",
            "<4>[    5.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01\n"
            "<4>[   99.0] NVRM: Xid (PCI:0000:01:00): 13, pid=5, Graphics Exception\n");
  facts::Facts facts = read(root);
  const facts::KernelDriver& kernel = facts.kernel;
  EXPECT_EQ(kernel.version.value, "535.183.01");
  EXPECT_EQ(kernel.version.source.detail, "/sys/module/nvidia/version");
  EXPECT_EQ(kernel.flavour.value, "proprietary");
  EXPECT_EQ(kernel.nouveau_loaded.value, false);
  EXPECT_EQ(kernel.uvm_loaded.value, true);
  EXPECT_EQ(kernel.uvm_hmm_disabled.value, false);
  EXPECT_EQ(kernel.module_on_disk.value,
            "/lib/modules/6.1.0-26-amd64/updates/dkms/nvidia-current.ko.xz");
  EXPECT_EQ(kernel.package_version.value, "535.183.01");
  EXPECT_EQ(kernel.fabric_manager.value, "not_installed");
  EXPECT_FALSE(kernel.nvswitch);
  EXPECT_EQ(kernel.log->size(), 2u);
  ASSERT_EQ(kernel.xids.size(), 1u);
  EXPECT_EQ(kernel.xids[0].number, 13u);
  ASSERT_NE(node(facts, "/dev/nvidia0"), nullptr);
  EXPECT_EQ(facts.kernel.nodes.front().path, "/dev/nvidia0");
  EXPECT_EQ(node(facts, "/dev/nvidia0")->mode.value, "-rw-rw-rw-");
  EXPECT_TRUE(node(facts, "/dev/nvidia0")->usable);
  ASSERT_NE(node(facts, "/dev/nvidia-uvm"), nullptr) << "an expected node that lacks is a fact";
  EXPECT_EQ(node(facts, "/dev/nvidia-uvm")->mode.why, WhyNot::not_present);
  const facts::DriverLibrary* cuda = library(facts, "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
  if (!cuda) cuda = library(facts, "/lib/x86_64-linux-gnu/libcuda.so.1");
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(cuda->version, "535.183.01");
  EXPECT_EQ(cuda->origin, "driver");
  EXPECT_TRUE(cuda->loads);
  EXPECT_EQ(facts.driver_libraries.size(), 2u) << "each file once";
}

TEST(KernelDriver, ReadsTheOpenModuleFromProcAlone) {
  FakeRoot root;
  root.file("/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
            "(user@)\n");
  facts::KernelDriver kernel = read(root).kernel;
  EXPECT_EQ(kernel.version.value, "580.159.04");
  EXPECT_EQ(kernel.flavour.value, "open");
}

TEST(KernelDriver, SeesNouveauAndAModuleForAnotherKernel) {
  FakeRoot root;
  test::add_proc(root, "6.8.0-49-generic");
  Card card;
  card.driver = "nouveau";
  test::add_card(root, card);
  root.folder("/sys/module/nouveau").folder("/lib/modules/6.8.0-49-generic/kernel");
  root.file("/lib/modules/6.8.0-48-generic/updates/dkms/nvidia.ko", "x");
  root.folder("/usr/src/nvidia-550.120").folder("/usr/src/nvidia-current-535.183.01");
  facts::Facts facts = read(root);
  EXPECT_EQ(facts.pci->front().driver.value, "nouveau");
  EXPECT_EQ(facts.kernel.nouveau_loaded.value, true);
  EXPECT_EQ(facts.kernel.version.why, WhyNot::not_present);
  EXPECT_FALSE(facts.kernel.module_on_disk);
  EXPECT_EQ(facts.kernel.module_on_disk.why, WhyNot::not_present);
  EXPECT_EQ(facts.kernel.package_version.value, "550.120");
  EXPECT_NE(node(facts, "/dev/nvidiactl"), nullptr);
}

TEST(KernelDriver, WithoutModuleFolderNothingIsSaidOfTheModule) {
  FakeRoot root;
  test::add_proc(root);
  EXPECT_EQ(read(root).kernel.module_on_disk.why, WhyNot::not_supported);
}

TEST(KernelDriver, NoGpuNoNodes) {
  FakeRoot root;
  test::add_proc(root);
  test::add_bare_host(root);
  root.folder("/sys/bus/pci/devices").folder("/sys/module").folder("/dev");
  facts::Facts facts = read(root);
  EXPECT_TRUE(facts.kernel.nodes.empty());
  EXPECT_FALSE(facts.kernel.version);
  EXPECT_EQ(facts.kernel.nouveau_loaded.value, false);
  EXPECT_EQ(facts.kernel.package_version.why, WhyNot::not_present);
  EXPECT_TRUE(facts.driver_libraries.empty());
}

TEST(KernelDriver, FindsPackagesOfOtherDistributions) {
  struct Case {
    const char *name, *path, *version;
  } cases[] = {{"dkms", "/var/lib/dkms/nvidia-open/580.65.06/source", "580.65.06"},
               {"Arch", "/var/lib/pacman/local/nvidia-open-dkms-580.82.09-3/desc", "580.82.09"},
               {"akmods", "/usr/src/akmods/nvidia-kmod-570.153.02-1.fc42.src.rpm", "570.153.02"},
               {"firmware", "/lib/firmware/nvidia/535.183.01/gsp_ga10x.bin", "535.183.01"},
               {"chips only", "/lib/firmware/nvidia/ga102/gsp/x.bin", nullptr}};
  for (const Case& each : cases) {
    FakeRoot root;
    root.file(each.path, "");
    Fact<std::string> found = read(root).kernel.package_version;
    EXPECT_EQ(found.value, each.version ? std::optional<std::string>(each.version) : std::nullopt)
        << each.name;
  }
}

TEST(KernelDriver, LooksForTheFabricManagerWhereItMatters) {
  FakeRoot root;
  test::add_bare_host(root);
  Card chip;
  chip.device = "0x22a3";
  chip.class_code = "0x068000";
  chip.driver = "nvidia-nvswitch";
  test::add_card(root, chip);
  EXPECT_TRUE(read(root).kernel.nvswitch);
  EXPECT_EQ(read(root).kernel.fabric_manager.value, "not_installed");
  root.file("/usr/bin/nv-fabricmanager", "");
  EXPECT_EQ(read(root).kernel.fabric_manager.value, "stopped");
  root.file("/proc/812/comm", "nv-fabricmanage\n");
  EXPECT_EQ(read(root).kernel.fabric_manager.value, "running");
  EXPECT_EQ(read(root, {{"APPTAINER_NAME", "x"}}).kernel.fabric_manager.why, WhyNot::not_supported);
}

TEST(KernelDriver, TakesOnlyThisStartFromALogFile) {
  FakeRoot root;
  root.file("/var/log/kern.log",
            "Nov 20 00:00:00 h kernel: [ 9.0] NVRM: Xid (PCI:0000:01:00): 79, old\n"
            "Nov 21 00:00:00 h kernel: [ 0.0] Linux version 6.1.0-26-amd64\n"
            "Nov 21 00:00:01 h kernel: [ 1.0] NVRM: Xid (PCI:0000:01:00): 31, new\n");
  facts::Facts facts = read(root);
  EXPECT_EQ(facts.kernel.log.source.detail, "/var/log/kern.log");
  ASSERT_EQ(facts.kernel.xids.size(), 1u);
  EXPECT_EQ(facts.kernel.xids[0].number, 31u);
}

TEST(KernelDriver, SaysWhyTheLogIsMissing) {
  FakeRoot root;
  root.file("/dev/kmsg", "x").mode("/dev/kmsg", 0);
  test::Unprivileged nobody;
  facts::Facts facts = read(root);
  EXPECT_EQ(facts.kernel.log.why, WhyNot::no_permission);
}

TEST(KernelDriver, ANodeWithoutRightsIsNotUsable) {
  FakeRoot root;
  test::add_card(root, Card{});
  for (const char* path : {"/dev/nvidia10", "/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap1"}) {
    root.file(path, "").mode(path, 0);  // not even for its owner, who may be the tester
  }
  test::Unprivileged nobody;
  facts::Facts facts = read(root);
  EXPECT_EQ(facts.kernel.nodes[0].path, "/dev/nvidia2") << "by number, not by text";
  EXPECT_EQ(facts.kernel.nodes[1].path, "/dev/nvidia10");
  EXPECT_FALSE(facts.kernel.nodes[0].usable);
  EXPECT_EQ(facts.kernel.nodes[0].mode.value, "----------");
  EXPECT_NE(node(facts, "/dev/nvidia-caps/nvidia-cap1"), nullptr);
}

TEST(DriverLibraries, AStubOnThePathShadowsTheDriver) {
  FakeRoot root;
  test::add_glibc(root);
  test::add_proc(root);
  test::add_library(root, "/usr/lib/x86_64-linux-gnu", "535.183.01");
  root.file("/usr/local/cuda-12.4/lib64/stubs/libcuda.so", test::elf_header());
  root.link("/usr/local/cuda-12.4/lib64/stubs/libcuda.so.1", "libcuda.so");
  facts::Facts facts = read(root, {{"LD_LIBRARY_PATH", "/usr/local/cuda-12.4/lib64/stubs"}});
  const facts::DriverLibrary* stub =
      library(facts, "/usr/local/cuda-12.4/lib64/stubs/libcuda.so.1");
  ASSERT_NE(stub, nullptr);
  EXPECT_TRUE(stub->loads);
  EXPECT_EQ(stub->origin, "stub");
  EXPECT_EQ(stub->found_by, "LD_LIBRARY_PATH");
  EXPECT_EQ(stub->version, "");
  size_t loaded = 0;
  for (const facts::DriverLibrary& each : facts.driver_libraries) loaded += each.loads;
  EXPECT_EQ(loaded, 2u) << "one of each name";
}

TEST(DriverLibraries, TellsCompatWslAndPlaceholders) {
  FakeRoot root;
  test::add_glibc(root);
  test::add_proc(root);
  test::add_library(root, "/usr/local/cuda-13.0/compat", "580.65.06");
  root.file("/usr/lib/wsl/lib/libcuda.so.1", test::elf_header());
  root.file("/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1/libcuda.so.1.1", test::elf_header() + "x");
  root.file("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
  facts::Facts facts = read(root);
  EXPECT_EQ(library(facts, "/usr/local/cuda-13.0/compat/libcuda.so.1")->origin, "compat");
  EXPECT_EQ(library(facts, "/usr/local/cuda-13.0/compat/libcuda.so.1")->version, "580.65.06");
  EXPECT_EQ(library(facts, "/usr/lib/wsl/lib/libcuda.so.1")->origin, "wsl");
  EXPECT_EQ(library(facts, "/usr/lib/wsl/lib/libcuda.so.1")->version, "");
  EXPECT_EQ(library(facts, "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1/libcuda.so.1.1")->origin,
            "wsl");
  for (const facts::DriverLibrary& each : facts.driver_libraries) {
    EXPECT_FALSE(each.loads) << each.path << ": an empty file ends the loader's search";
  }
  bool has_problem = false;
  for (const facts::DriverLibrary& each : facts.driver_libraries)
    has_problem |= each.problem == "file too short";
  EXPECT_TRUE(has_problem);
}

TEST(DriverLibraries, ACopyGetsTheVersionOfItsTwin) {
  FakeRoot root;
  test::add_glibc(root);
  test::add_proc(root);
  root.file("/usr/lib64/libcuda.so.1", test::elf_header())
      .file("/usr/lib64/libcuda.so.550.54.14", test::elf_header());
  root.file("/usr/local/lib/libcuda.so.1", test::elf_header() + "y");
  root.file("/usr/local/lib/libcuda.so.550.54.14", test::elf_header());
  facts::Facts facts = read(root);
  EXPECT_EQ(library(facts, "/usr/lib64/libcuda.so.1")->version, "550.54.14");
  EXPECT_EQ(library(facts, "/usr/local/lib/libcuda.so.1")->version, "")
      << "another size is another build";
}

}  // namespace gpu_probes_test
}  // namespace cufit::host
