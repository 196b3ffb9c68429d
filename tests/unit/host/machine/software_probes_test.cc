// SPDX-License-Identifier: Apache-2.0
// Toolkits, environment variables, container engines.
#include "host/probe.h"

#include <gtest/gtest.h>

#include "support/fake_root.h"

namespace cufit::host {
namespace software_probes_test {

using test::FakeRoot;

std::vector<facts::Toolkit> toolkits(const FakeRoot& root,
                                     std::map<std::string, std::string> variables = {}) {
  facts::Facts facts;
  read_toolkits(root.host(std::move(variables)), facts);
  return facts.toolkits;
}

TEST(Toolkits, FollowsTheOrderOfABuildAndNamesEachFolderOnce) {
  FakeRoot root;
  root.file("/usr/local/cuda-12.4/version.json",
            R"({"cuda":{"name":"CUDA SDK","version":"12.4.1"}})");
  root.file("/usr/local/cuda-12.4/bin/nvcc", "").link("/usr/local/cuda", "/etc/alternatives/cuda");
  root.link("/etc/alternatives/cuda", "/usr/local/cuda-12.4");
  root.file("/usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n");
  root.file("/opt/cuda/lib64/libcudart.so.13.0.96", "")
      .file("/usr/local/cuda-11.0/compat/libcuda.so.1", "");
  root.file("/usr/local/cudnn/lib64/x", "");
  std::vector<facts::Toolkit> found =
      toolkits(root, {{"PATH", "/usr/bin:/usr/local/cuda/bin"}, {"CUDA_HOME", "/opt/cuda"}});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].path, "/opt/cuda");
  EXPECT_EQ(found[0].found_by, "CUDA_HOME");
  EXPECT_EQ(found[0].version.value, "13.0");
  EXPECT_FALSE(found[0].nvcc);
  EXPECT_EQ(found[1].path, "/usr/local/cuda-12.4");
  EXPECT_EQ(found[1].found_by, "PATH");
  EXPECT_EQ(found[1].version.value, "12.4.1");
  EXPECT_EQ(found[1].nvcc.value, "/usr/local/cuda-12.4/bin/nvcc");
  EXPECT_EQ(found[2].path, "/usr/local/cuda-10.2");
  EXPECT_EQ(found[2].version.value, "10.2.89");
  EXPECT_EQ(found[2].found_by, "/usr/local");
}

TEST(Toolkits, ReadsTheVersionFromWhatIsThere) {
  struct Case {
    const char *path, *text;
    std::optional<std::string> version;
  } cases[] = {{"/include/cuda.h", "#define CUDA_VERSION 12080\n", "12.8"},
               {"/include/cuda.h", "#define CUDA_VERSION many\n", std::nullopt},
               {"/lib64/libcudart.so.11.8.89", "", "11.8"},
               {"/lib64/libcudart.so.12", "", std::nullopt},
               {"/version.json", "{\"cuda\":", std::nullopt}};
  for (const Case& each : cases) {
    FakeRoot root;
    root.file("/usr/local/cuda/bin/nvcc", "")
        .file(std::string("/usr/local/cuda") + each.path, each.text);
    std::vector<facts::Toolkit> found = toolkits(root);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].version.value, each.version) << each.path;
  }
}

TEST(Toolkits, FindsTheDistributionsPackage) {
  FakeRoot root;
  root.file("/usr/lib/nvidia-cuda-toolkit/bin/nvcc", "")
      .link("/usr/bin/nvcc", "../lib/nvidia-cuda-toolkit/bin/nvcc");
  root.file("/usr/lib/x86_64-linux-gnu/libcudart.so.11.8.89", "");
  std::vector<facts::Toolkit> found = toolkits(root, {{"PATH", "/usr/bin"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, "/usr/lib/nvidia-cuda-toolkit");
  EXPECT_EQ(found[0].version.value, "11.8");
}

TEST(Variables, KeepsWhatMattersAndNoSecrets) {
  FakeRoot root;
  facts::Facts facts;
  read_variables(root.host({{"CUDA_VISIBLE_DEVICES", ""},
                            {"NVIDIA_API_KEY", "x"},
                            {"NCCL_DEBUG", "INFO"},
                            {"TORCH_SECRET", "x"},
                            {"CUDA_AUTH_TOKEN", "x"},
                            {"NVIDIA_PASSWORD", "x"},
                            {"HOME", "/home/u"},
                            {"LD_LIBRARY_PATH", "/a:\x1b[31m"},
                            {"PYTORCH_ALLOC_CONF", "expandable_segments:True"}}),
                 facts);
  std::vector<std::string> names;
  for (const facts::EnvVariable& each : facts.variables) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH",
                                             "NCCL_DEBUG", "PYTORCH_ALLOC_CONF"}));
  EXPECT_EQ(facts.variables[0].value, "") << "empty hides every GPU and is not unset";
  EXPECT_EQ(facts.variables[1].value, "/a:?[31m");
}

facts::ContainerEngine engine(const FakeRoot& root,
                              std::map<std::string, std::string> variables = {}) {
  facts::Facts facts;
  read_container_engine(root.host(std::move(variables)), facts);
  return facts.engine;
}

TEST(ContainerEngine, ReadsARegisteredRuntime) {
  FakeRoot root;
  root.file("/usr/bin/dockerd", "")
      .file("/usr/bin/nvidia-ctk", "")
      .file("/etc/cdi/nvidia.yaml", "");
  root.file("/etc/cdi/other.yaml", "kind: vendor.com/nic\n")
      .file("/var/run/cdi/gpu.json", "{\"kind\":\"nvidia.com/gpu\"}");
  root.file("/etc/docker/daemon.json",
            R"({"runtimes":{"nvidia":{"path":"nvidia-container-runtime"}}})");
  facts::ContainerEngine found = engine(root);
  EXPECT_EQ(found.docker.value, "/usr/bin/dockerd");
  EXPECT_EQ(found.toolkit.value, "/usr/bin/nvidia-ctk");
  EXPECT_EQ(found.runtime_registered.value, true);
  EXPECT_EQ(found.default_runtime.value, "runc");
  EXPECT_EQ(found.snap_docker.value, false);
  EXPECT_EQ(found.cdi_specs,
            (std::vector<std::string>{"/etc/cdi/nvidia.yaml", "/var/run/cdi/gpu.json"}));
}

// The operator's own spec is none that nvidia-ctk renews; the later folder wins.
TEST(ContainerEngine, TheDriverOfTheSpecThatWins) {
  const auto spec = [](const std::string& kind, const std::string& version) {
    return "cdiVersion: 0.5.0\nkind: " + kind + "\n- hostPath: /usr/lib/libcuda.so." + version +
           "\n";
  };
  FakeRoot root;
  root.file("/etc/cdi/nvidia.yaml", spec("nvidia.com/gpu", "570.86.15"));
  EXPECT_EQ(engine(root).cdi_driver.value, "570.86.15");
  root.file("/var/run/cdi/management.nvidia.com-gpu.yaml",
            spec("management.nvidia.com/gpu", "550.54.15"));
  root.file("/var/run/cdi/nvidia-gds.yaml", spec("nvidia.com/gds", "550.54.15"));
  EXPECT_EQ(engine(root).cdi_driver.value, "570.86.15");
  root.file("/var/run/cdi/gpu.json", spec("\"nvidia.com/gpu\"", "580.95.05"));
  EXPECT_EQ(engine(root).cdi_driver.value, "580.95.05");
  EXPECT_EQ(engine(root).cdi_driver.source.detail, "/var/run/cdi/gpu.json");
}

TEST(ContainerEngine, WithoutSettingsTheRuntimeIsNotRegistered) {
  FakeRoot root;
  root.file("/usr/bin/dockerd", "");
  EXPECT_EQ(engine(root).runtime_registered.value, false);
  root.file("/etc/docker/daemon.json", "{");
  EXPECT_EQ(engine(root).runtime_registered.why, WhyNot::malformed);
  root.mode("/etc/docker/daemon.json", 0);
  test::Unprivileged nobody;
  EXPECT_EQ(engine(root).runtime_registered.why, WhyNot::no_permission);
}

TEST(ContainerEngine, SnapHasItsOwnSettings) {
  FakeRoot root;
  root.file("/snap/bin/docker", "")
      .folder("/snap/docker/current")
      .file("/etc/docker/daemon.json", R"({"runtimes":{"nvidia":{}}})");
  EXPECT_EQ(engine(root).snap_docker.value, true);
  EXPECT_EQ(engine(root).runtime_registered.value, false);
  root.file("/usr/bin/dockerd", "");
  EXPECT_EQ(engine(root).snap_docker.value, false);
  EXPECT_EQ(engine(root).runtime_registered.value, true);
}

TEST(ContainerEngine, InsideAContainerNothingIsThere) {
  FakeRoot root;
  facts::ContainerEngine found = engine(root);
  EXPECT_FALSE(found.docker);
  EXPECT_FALSE(found.toolkit);
  EXPECT_EQ(found.runtime_registered.why, WhyNot::not_present);
}

}  // namespace software_probes_test
}  // namespace cufit::host
