// SPDX-License-Identifier: Apache-2.0
#include "report/collect_env.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "facts/collect_env_facts.h"
#include "formats/prose/collect_env_dump.h"
#include "support/places.h"
#include "unit/report/sample.h"

namespace cufit::report {
namespace collect_env_test {

template <class T>
Fact<T> seen(T value) {
  return known<T>(std::move(value), SourceKind::file, "x");
}

testing::World h200() {
  testing::World world = testing::healthy();
  facts::Facts& facts = world.facts;
  facts.system.distribution = seen<std::string>("Ubuntu 24.04.3 LTS");
  facts.system.architecture = seen<std::string>("x86_64");
  facts.system.kernel = seen<std::string>("6.8.0-31-generic");
  facts.system.glibc = seen<std::string>("2.39");
  facts.system.cpu_model = seen<std::string>("Intel(R) Xeon(R) Processor");
  facts.system.cpus = seen<uint64_t>(16);
  facts.nvml.driver_version = seen<std::string>("580.159.04");
  facts::NvmlGpu gpu;
  gpu.name = seen<std::string>("NVIDIA H200");
  facts.nvml.gpus = {gpu};
  facts.cuda.init_result = seen(0);
  facts.cuda.device_count = seen(1);
  facts::Toolkit toolkit;
  toolkit.version = seen<std::string>("13.0.2");
  toolkit.nvcc = seen<std::string>("/usr/local/cuda/bin/nvcc");
  toolkit.nvcc_version = seen<std::string>("13.0.88");
  toolkit.on_path = true;
  facts.toolkits = {toolkit};
  facts::DriverLibrary libcuda;
  libcuda.soname = "libcuda.so.1";
  libcuda.path = "/lib/x86_64-linux-gnu/libcuda.so.1";
  libcuda.version = "580.159.04";
  libcuda.loads = true;
  facts.driver_libraries = {libcuda};
  facts.collect_env.cpu = {{"Architecture", "x86_64"},
                           {"CPU(s)", "16"},
                           {"Model name", "Intel(R) Xeon(R) Processor"},
                           {"NUMA node0 CPU(s)", ""}};
  facts.collect_env.gcc = seen<std::string>("(Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0");
  facts.collect_env.cmake = seen<std::string>("version 4.4.3");
  facts.collect_env.cudnn = seen<std::vector<std::string>>({"/usr/lib/libcudnn.so.9.14.0"});
  facts::PythonEnv& env = facts.envs[0];
  env.torch.cuda = seen<std::string>("13.0");
  env.torch.debug = seen(false);
  env.torch.xnnpack = seen(true);
  env.torch.hip = missing<std::string>(WhyNot::not_present, SourceKind::file, "version.py");
  facts::LoadedLibrary cudnn;
  cudnn.name = "libcudnn.so.9";
  cudnn.path = "/opt/venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9";
  cudnn.by = "RPATH";
  facts::LoadedLibrary ops = cudnn, torch = cudnn, missing_one;
  ops.name = "libcudnn_ops.so.9";
  ops.path = "/opt/venv/lib/python3.12/site-packages/torch/../nvidia/cudnn/lib/libcudnn_ops.so.9";
  torch.name = "libtorch.so";
  missing_one.name = "libcupti.so.13";
  missing_one.asked_by = "/opt/venv/lib/libtorch_cpu.so";
  env.loads = {cudnn, torch, ops, missing_one};
  auto package = [](const char* name, const char* version) {
    facts::Distribution out;
    out.name = name;
    out.version = version;
    out.kind = "dist-info";
    return out;
  };
  env.distributions = seen<std::vector<facts::Distribution>>(
      {package("intel-cmplr", "1"), package("mypy-extensions", "1.1.0"), package("numpy", "2.5.2"),
       package("optimistix", "0.1.0"), package("requests", "2.0"), package("torch", "2.11.0")});
  (*env.distributions.value)[1].display_name = "mypy_extensions";
  return world;
}

TEST(CollectEnv, PrintsTorchsForm) {
  EXPECT_EQ(collect_env_text(h200().view()),
            "Collecting environment information...\n"
            "PyTorch version: 2.11.0+cu130\n"
            "Is debug build: False\n"
            "CUDA used to build PyTorch: 13.0\n"
            "ROCM used to build PyTorch: N/A\n"
            "\n"
            "OS: Ubuntu 24.04.3 LTS (x86_64)\n"
            "GCC version: (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0\n"
            "Clang version: Could not collect\n"
            "CMake version: version 4.4.3\n"
            "Libc version: glibc-2.39\n"
            "\n"
            "Python version: 3.12.3 (64-bit runtime)\n"
            "Python platform: Linux-6.8.0-31-generic-x86_64-with-glibc2.39\n"
            "Is CUDA available: True\n"
            "CUDA runtime version: 13.0.88\n"
            "CUDA_MODULE_LOADING set to: \n"
            "GPU models and configuration: GPU 0: NVIDIA H200\n"
            "Nvidia driver version: 580.159.04\n"
            "cuDNN version: /usr/lib/libcudnn.so.9.14.0\n"
            "Is XPU available: False\n"
            "HIP runtime version: N/A\n"
            "MIOpen runtime version: N/A\n"
            "Is XNNPACK available: True\n"
            "Caching allocator config: N/A\n"
            "\n"
            "CPU:\n"
            "Architecture:      x86_64\n"
            "CPU(s):            16\n"
            "Model name:        Intel(R) Xeon(R) Processor\n"
            "NUMA node0 CPU(s): \n"
            "\n"
            "Versions of relevant libraries:\n"
            "[pip3] mypy_extensions==1.1.0\n"
            "[pip3] numpy==2.5.2\n"
            "[pip3] torch==2.11.0\n"
            "[conda] Could not collect\n"
            "\n"
            "cufit:\n"
            "cufit version: " CUFIT_VERSION
            "\n"
            "verdict: works\n"
            "libcuda.so.1: /lib/x86_64-linux-gnu/libcuda.so.1 (580.159.04)\n"
            "environment: /opt/venv\n"
            "CUDA libraries: libcudnn.so.9 libcudnn_ops.so.9 (RPATH: "
            "lib/python3.12/site-packages/nvidia/cudnn/lib)\n"
            "would not be found: libcupti.so.13 (needed by /opt/venv/lib/libtorch_cpu.so)\n");
}

TEST(CollectEnv, AvailabilityIsTheDriversWord) {
  struct Case {
    const char* name;
    Fact<int> init, count;
    const char* expected;
  };
  auto none = [](WhyNot why) { return missing<int>(why, SourceKind::cuda, "cuInit"); };
  for (const Case& c :
       {Case{"works", seen(0), seen(2), "True"}, Case{"no device", seen(0), seen(0), "False"},
        Case{"too old", seen(803), none(WhyNot::not_asked), "False"},
        Case{"no libcuda", none(WhyNot::not_present), {}, "False"},
        Case{"hang", none(WhyNot::timeout), {}, "Could not collect"},
        Case{"not asked", none(WhyNot::not_asked), {}, "Could not collect"},
        Case{"count unknown", seen(0), none(WhyNot::timeout), "Could not collect"}}) {
    testing::World world = h200();
    world.facts.cuda.init_result = c.init;
    world.facts.cuda.device_count = c.count;
    EXPECT_EQ(collect_env(world.facts).is_cuda_available, c.expected) << c.name;
  }
  testing::World world = h200();
  world.facts.envs[0].torch.cuda =
      missing<std::string>(WhyNot::not_present, SourceKind::file, "version.py");
  EXPECT_EQ(collect_env(world.facts).is_cuda_available, "False");  // a CPU build asks no driver
  EXPECT_EQ(collect_env(world.facts).cuda_compiled_version, "Could not collect");
}

TEST(CollectEnv, WithoutAnyTraceOfCuda) {
  testing::World world = h200();
  world.facts.nvml = {};
  world.facts.cuda.init_result =
      missing<int>(WhyNot::not_present, SourceKind::cuda, "libcuda.so.1");
  world.facts.toolkits.clear();
  CollectEnv env = collect_env(world.facts);
  EXPECT_EQ(env.nvidia_gpu_models, "No CUDA");
  EXPECT_EQ(env.nvidia_driver_version, "No CUDA");
  EXPECT_EQ(env.cuda_runtime_version, "No CUDA");
  EXPECT_EQ(env.cudnn_version, "No CUDA");
}

TEST(CollectEnv, NothingKnownIsSaid) {
  CollectEnv env = collect_env(facts::Facts());
  EXPECT_EQ(env.torch_version, "N/A");
  EXPECT_EQ(env.is_cuda_available, "N/A");
  EXPECT_EQ(env.os, "Could not collect");
  EXPECT_EQ(env.python_version, "Could not collect");
}

TEST(CollectEnv, SeveralGpusStandOnTheirOwnLines) {
  testing::World world = h200();
  facts::NvmlGpu second = world.facts.nvml.gpus[0];
  second.index = 1;
  second.mig_instances = {{"1g.18gb", "", {}}};
  world.facts.nvml.gpus.push_back(second);
  EXPECT_EQ(collect_env(world.facts).nvidia_gpu_models,
            "\nGPU 0: NVIDIA H200\nGPU 1: NVIDIA H200\n  MIG 1g.18gb     Device  0:");
}

TEST(CollectEnv, ModuleLoadingIsTheVariableOrWhatTorchSets) {
  testing::World world = h200();
  EXPECT_EQ(collect_env(world.facts).cuda_module_loading, "");
  world.facts.envs[0].torch.module_loading = seen<std::string>("LAZY");
  EXPECT_EQ(collect_env(world.facts).cuda_module_loading, "LAZY");
  world.facts.variables = {{"CUDA_MODULE_LOADING", "EAGER"}};
  EXPECT_EQ(collect_env(world.facts).cuda_module_loading, "EAGER");
  world.facts.cuda.device_count = seen(0);
  EXPECT_EQ(collect_env(world.facts).cuda_module_loading, "N/A");
}

TEST(CollectEnv, OnlyTheNvccInPathCounts) {
  testing::World world = h200();
  facts::Toolkit other = world.facts.toolkits[0];
  other.on_path = false;
  other.nvcc_version = seen<std::string>("12.4.131");
  world.facts.toolkits.push_back(other);
  EXPECT_EQ(collect_env(world.facts).cuda_runtime_version, "13.0.88");
  world.facts.toolkits = {other};
  EXPECT_EQ(collect_env(world.facts).cuda_runtime_version, "Could not collect");
}

// What is printed is read back with the same meaning.
TEST(CollectEnv, ReadsBackWhatItPrints) {
  testing::World world = h200();
  facts::NvmlGpu second = world.facts.nvml.gpus[0];
  second.index = 1;
  second.mig_instances = {{"1g.18gb", "", {}}};
  world.facts.nvml.gpus.push_back(second);
  world.facts.collect_env.cudnn.value->push_back("/usr/lib/libcudnn_ops.so.9.14.0");
  std::vector<std::string> texts{collect_env_text(world.view())};
  if (std::ifstream file(cufit::test::source_dir() + "/../shared/gpu/machine-h200/collect_env.txt");
      file) {
    std::stringstream text;
    text << file.rdbuf();
    texts.push_back(text.str());
  }
  for (const std::string& text : texts) {
    Result<facts::Facts> first = facts::facts_from_dump(text, "a");
    ASSERT_TRUE(first.has_value());
    testing::World again;
    again.facts = *first;
    Result<facts::Facts> second_read = facts::facts_from_dump(collect_env_text(again.view()), "b");
    ASSERT_TRUE(second_read.has_value());
    CollectEnv a = collect_env(*first), b = collect_env(*second_read);
    EXPECT_EQ(a.torch_version, b.torch_version);
    EXPECT_EQ(a.is_debug_build, b.is_debug_build);
    EXPECT_EQ(a.cuda_compiled_version, b.cuda_compiled_version);
    EXPECT_EQ(a.os, b.os);
    EXPECT_EQ(a.gcc_version, b.gcc_version);
    EXPECT_EQ(a.cmake_version, b.cmake_version);
    EXPECT_EQ(a.is_xnnpack_available, b.is_xnnpack_available);
    EXPECT_EQ(a.libc_version, b.libc_version);
    EXPECT_EQ(a.python_version, b.python_version);
    EXPECT_EQ(a.python_platform, b.python_platform);
    EXPECT_EQ(a.is_cuda_available, b.is_cuda_available);
    EXPECT_EQ(a.cuda_runtime_version, b.cuda_runtime_version);
    EXPECT_EQ(a.nvidia_gpu_models, b.nvidia_gpu_models);
    EXPECT_EQ(a.nvidia_driver_version, b.nvidia_driver_version);
    EXPECT_EQ(a.cudnn_version, b.cudnn_version);
    EXPECT_EQ(a.cpu_info, b.cpu_info);
    EXPECT_EQ(a.pip_packages, b.pip_packages);
    EXPECT_EQ(b.is_cuda_available, "True");
    EXPECT_FALSE(b.pip_packages.empty());
  }
}

// The labels that the real tool printed on a real machine, in its order.
TEST(CollectEnv, SameLabelsAsTheRealTool) {
  std::ifstream file(cufit::test::source_dir() + "/../shared/gpu/machine-h200/collect_env.txt");
  if (!file) GTEST_SKIP() << "the shared dump is not beside this checkout";
  std::stringstream real;
  real << file.rdbuf();
  auto labels = [](const std::string& text) {
    std::vector<std::string> out;
    for (std::string_view line : split_lines(text)) {
      if (line == "CPU:") break;
      size_t colon = line.find(':');
      if (line.empty()) out.emplace_back();
      if (colon != std::string_view::npos && line[0] != '/' && line[0] != '<')
        out.emplace_back(line.substr(0, colon));
    }
    return out;
  };
  EXPECT_EQ(labels(collect_env_text(h200().view())), labels(real.str()));
}

TEST(CollectEnv, JsonUsesTorchsNames) {
  nlohmann::json json = nlohmann::json::parse(collect_env_json(h200().view()));
  EXPECT_EQ(json["schema"], "cufit.collect_env/1");
  EXPECT_EQ(json["torch_version"], "2.11.0+cu130");
  EXPECT_EQ(json["is_cuda_available"], "True");
  EXPECT_EQ(json["cpu_info"]["CPU(s)"], "16");
  EXPECT_EQ(json["pip_packages"][2], "torch==2.11.0");
  EXPECT_EQ(json["cufit"]["verdict"], "works");
  EXPECT_EQ(json["cufit"]["would_load"][0]["by"], "RPATH");
}

TEST(CollectEnv, FindingsStandInTheLastSection) {
  testing::World world = testing::broken();
  std::string text = collect_env_text(world.view());
  size_t section = text.find("\ncufit:\n");
  ASSERT_NE(section, std::string::npos);
  EXPECT_GT(text.find("error: driver_too_old: The driver is too old for CUDA 12.1 (GPU 0)\n"),
            section);
}

}  // namespace collect_env_test
}  // namespace cufit::report
