// SPDX-License-Identifier: Apache-2.0
#include "host/driver/gpu_access.h"

#include <gtest/gtest.h>

#include "support/machines.h"

namespace cufit::host {
namespace visible_gpus_test {

using test::FakeRoot;

constexpr const char* k_ada = "2684";
constexpr const char* k_pascal = "1b80";

void add_gpu(FakeRoot& root, int number, const std::string& id, bool node = true,
             const std::string& uuid = "") {
  const std::string n = std::to_string(number);
  const std::string address = "0000:0" + std::to_string(number + 1) + ":00.0";
  root.file("/sys/bus/pci/devices/" + address + "/device", "0x" + id + "\n");
  root.file("/proc/driver/nvidia/gpus/" + address + "/information",
            "Model: \t\t NVIDIA GeForce X\nGPU UUID: \t " +
                (uuid.empty() ? "GPU-0000000" + n + "-1111-2222-3333-444444444444" : uuid) +
                "\nDevice Minor: \t " + n + "\n");
  if (node) root.file("/dev/nvidia" + n, "");
}

void add_driver(FakeRoot& root, const std::string& version = "535.183.01",
                const std::string& library = "535.183.01") {
  test::add_glibc(root);
  test::add_proc(root);
  root.file("/sys/module/nvidia/version", version + "\n");
  root.file("/usr/lib/x86_64-linux-gnu/libcuda.so." + library, test::elf_header());
  root.link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so." + library);
}

using Variables = std::map<std::string, std::string>;

// "0 1" the GPUs, "ask order", or "none hidden".
std::string seen(const FakeRoot& root, const Variables& variables = {}) {
  const facts::Visibility visible = facts::visible_gpus(read_gpu_access(root.host(variables)));
  if (!visible.ask.empty()) return "ask " + visible.ask;
  std::string out = visible.none.empty() ? "" : "none " + visible.none;
  for (const size_t gpu : visible.gpus) out += (out.empty() ? "" : " ") + std::to_string(gpu);
  return out;
}

TEST(GpuAccess, EqualGpusNeedNoDriver) {
  FakeRoot root;
  add_driver(root);
  add_gpu(root, 0, k_ada);
  add_gpu(root, 1, k_ada);
  const struct {
    const char* value;
    const char* expected;
  } rows[] = {{"0", "0"},
              {"1,0", "1 0"},
              {"1,7", "1"},
              {"1,-1,0", "ask names"},
              {"", "none hidden"},
              {" ", "none hidden"},
              {"-1", "none hidden"},
              {"NoDevFiles", "none hidden"},
              {"2", "none unmatched"},
              {"99999999999", "ask names"},
              {"GPU-00000001", "1"},
              {"GPU-0000000", "ask names"},
              {"GPU-7", "none unmatched"},
              {"GPU-00000001,0", "ask names"},
              {"0,0", "ask names"},
              {"0, 1", "ask names"},
              {"MIG-aaaaaaaa-1111-2222-3333-444444444444", "ask names"},
              {"0x1", "ask names"}};
  EXPECT_EQ(seen(root), "0 1");
  for (const auto& row : rows)
    EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", row.value}}), row.expected) << row.value;
}

TEST(GpuAccess, OtherKindsNeedItForNumbersInCudasOrder) {
  FakeRoot root;
  add_driver(root);
  add_gpu(root, 0, k_pascal);
  add_gpu(root, 1, k_ada);
  EXPECT_EQ(seen(root), "0 1");
  EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", "0"}}), "ask order");
  EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", "1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}), "1");
  EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", "0"}, {"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}}),
            "ask order");
  EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", "GPU-00000001"}}), "1");
}

TEST(GpuAccess, UuidsThatAreNotToldYetAreAskedFor) {
  FakeRoot root;
  add_driver(root);
  add_gpu(root, 0, k_ada);
  add_gpu(root, 1, k_ada, true, "GPU-" + std::string(8, '?'));
  EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", "GPU-00000000"}}), "ask names");
  EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", "1"}}), "1");
}

TEST(GpuAccess, NodesThatLack) {
  FakeRoot equal;
  add_driver(equal);
  add_gpu(equal, 0, k_ada, false);
  add_gpu(equal, 1, k_ada);
  EXPECT_EQ(seen(equal), "1");
  EXPECT_EQ(seen(equal, {{"CUDA_VISIBLE_DEVICES", "0"}}), "1");
  EXPECT_EQ(seen(equal, {{"CUDA_VISIBLE_DEVICES", "1"}}), "ask nodes");  // it may be made
  FakeRoot mixed;
  add_driver(mixed);
  add_gpu(mixed, 0, k_ada, false);
  add_gpu(mixed, 1, k_pascal);
  EXPECT_EQ(seen(mixed), "ask nodes");
  FakeRoot none;
  add_driver(none);
  add_gpu(none, 0, k_ada, false);
  EXPECT_EQ(seen(none), "ask nodes");
}

TEST(GpuAccess, AskWhereSomethingElseIsInPlay) {
  const auto machine = [](FakeRoot& root, const std::string& library = "535.183.01") {
    add_driver(root, "535.183.01", library);
    add_gpu(root, 0, k_ada);
  };
  FakeRoot mig;
  machine(mig);
  mig.folder("/proc/driver/nvidia/capabilities/gpu0/mig/gi3");
  EXPECT_EQ(seen(mig), "ask mig");
  FakeRoot mps;
  machine(mps);
  mps.file("/tmp/nvidia-mps/control", "");
  EXPECT_EQ(seen(mps), "ask mps");
  FakeRoot plain;
  machine(plain);
  EXPECT_EQ(seen(plain), "0");
  EXPECT_EQ(seen(plain, {{"CUDA_MPS_PIPE_DIRECTORY", "/run/mps"}}), "ask mps");
  EXPECT_EQ(seen(plain, {{"LD_PRELOAD", "/opt/libvgpu.so"}}), "ask preload");
  EXPECT_EQ(seen(plain, {{"LD_PRELOAD", "/usr/lib/libtcmalloc.so.4"}}), "0");
  FakeRoot other;
  machine(other, "550.54.15");
  EXPECT_EQ(seen(other), "ask mismatch");
  plain.file("/usr/local/cuda-13.0/compat/libcuda.so.580.65.06", test::elf_header());
  plain.link("/usr/local/cuda-13.0/compat/libcuda.so.1", "libcuda.so.580.65.06");
  EXPECT_EQ(seen(plain, {{"LD_LIBRARY_PATH", "/usr/local/cuda-13.0/compat"}}), "ask compat");
  FakeRoot wsl;
  machine(wsl);
  wsl.file("/dev/dxg", "");
  EXPECT_EQ(seen(wsl), "ask wsl");
  FakeRoot unread;
  add_driver(unread);
  EXPECT_EQ(seen(unread), "ask unread");  // a container may hide /proc/driver
  unread.folder("/proc/driver/nvidia/gpus");
  EXPECT_EQ(seen(unread), "");
  unread.folder("/proc/driver/nvidia/gpus/0000:01:00.0");
  EXPECT_EQ(seen(unread), "ask unread");
}

TEST(GpuAccess, ExcludedGpusAreNotCounted) {
  FakeRoot root;
  add_driver(root);
  add_gpu(root, 0, k_pascal);
  add_gpu(root, 1, k_ada);
  root.file("/proc/driver/nvidia/gpus/0000:01:00.0/information",
            "Device Minor: \t 0\nGPU Excluded:\t Yes\n");
  const facts::GpuAccess launch = read_gpu_access(root.host());
  ASSERT_EQ(launch.gpus.size(), 1u);
  EXPECT_EQ(launch.gpus[0].device_id, k_ada);
  EXPECT_EQ(seen(root, {{"CUDA_VISIBLE_DEVICES", "0"}}), "0");
}

TEST(GpuAccess, NoLibraryNoGpu) {
  FakeRoot root;
  test::add_glibc(root);
  test::add_proc(root);
  EXPECT_EQ(seen(root), "");
  root.file("/usr/lib/x86_64-linux-gnu/libcuda.so.1", test::elf_header());
  EXPECT_EQ(seen(root), "ask no_module");  // a sandbox may hide the module
}

TEST(GpuAccess, KeyHoldsWhatTheAnswerDependsOn) {
  FakeRoot root;
  add_driver(root);
  add_gpu(root, 0, k_ada);
  const auto key = [&](const Variables& variables = {}) {
    const RealHost host = root.host(variables);
    return visibility_key(host, read_gpu_access(host));
  };
  std::vector<std::string> keys = {key()};
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH",
                           "CUDA_MPS_PIPE_DIRECTORY", "NVIDIA_VISIBLE_DEVICES"})
    keys.push_back(key({{name, "/x"}}));
  EXPECT_EQ(key({{"SECRET", "1"}}), keys[0]);
  root.file("/sys/module/nvidia/version", "550.54.15\n");
  keys.push_back(key());
  add_gpu(root, 1, k_ada);
  keys.push_back(key());
  root.file("/dev/nvidia-caps/x", "");
  keys.push_back(key());
  root.folder("/proc/driver/nvidia/capabilities/gpu0/mig/gi3/ci0");
  keys.push_back(key());
  root.file("/proc/sys/kernel/random/boot_id", "11111111-7b06-491f-8450-a12738990dc6\n");
  keys.push_back(key());
  for (size_t i = 0; i < keys.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " " << j;
  std::filesystem::remove(root.at("/proc/sys/kernel/random/boot_id"));
  EXPECT_EQ(key(), "");
}

}  // namespace visible_gpus_test
}  // namespace cufit::host
