// SPDX-License-Identifier: Apache-2.0
// What surrounds torch: environment variables, the state of its installation, partner packages,
// CUDA libraries.
#include <gtest/gtest.h>

#include <functional>

#include "checks/machine_checks.h"
#include "checks/report_sections.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace surroundings_test {

using namespace world;

struct Case {
  const char* what;
  std::function<void(World&)> change;
  Texts want;
};

void expect_all(Check check, const std::function<World()>& base, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    World w = base();
    one.change(w);
    EXPECT_EQ(brief(run(check, w)), one.want) << one.what;
  }
}

World torch(const char* release, const char* tag, const char* cuda) {
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9")
      .driver("580.95.05")
      .env(torch_env(release, tag, cuda, k_cu130));
  return w;
}

facts::Distribution& add(World& w, const char* name, const char* version, const char* location = "",
                         const char* kind = "dist-info") {
  std::vector<facts::Distribution>& all = *w.facts.envs[0].distributions.value;
  facts::Distribution made;
  made.name = name;
  made.version = version;
  made.location =
      *location ? location : std::string("/env/sp/") + name + "-" + version + ".dist-info";
  made.kind = kind;
  made.installer = std::string(kind) == "conda-meta" ? "conda" : "pip";
  all.push_back(made);
  return all.back();
}
facts::Distribution& torch_of(World& w) { return (*w.facts.envs[0].distributions.value)[0]; }
void set(World& w, const char* name, const char* value) {
  w.facts.variables.push_back({name, value});
}

TEST(VisibleDevices, ReadsTheListAsTheDriverDoes) {
  const auto base = [] {
    World w;
    w.gpu("NVIDIA GeForce RTX 4090", "8.9").gpu("NVIDIA GeForce RTX 4090", "8.9");
    for (facts::NvmlGpu& gpu : w.facts.nvml.gpus)
      gpu.uuid =
          known<std::string>("GPU-" + std::to_string(gpu.index) + "abc", SourceKind::nvml, "x");
    return w;
  };
  const auto value = [](const char* text) {
    return [text](World& w) { set(w, "CUDA_VISIBLE_DEVICES", text); };
  };
  expect_all(check_visible_devices, base,
             {
                 {"not set", [](World&) {}, {}},
                 {"in range", value("1,0"), {}},
                 {"spaces", value("0, 1"), {}},
                 {"empty", value(""), {"cuda_visible_devices/error/empty"}},
                 {"minus one", value("-1"), {"cuda_visible_devices/error/empty"}},
                 {"out of range", value("7"), {"cuda_visible_devices/error"}},
                 {"one too many", value("2"), {"cuda_visible_devices/error"}},
                 {"cut", value("0,7,1"), {"cuda_visible_devices/warning/cut"}},
                 {"a word", value("cuda:0"), {"cuda_visible_devices/error"}},
                 {"huge", value("99999999999999999999"), {"cuda_visible_devices/error"}},
                 {"UUID", value("GPU-1abc"), {}},
                 {"UUID prefix", value("GPU-1"), {}},
                 {"foreign UUID", value("GPU-9"), {"cuda_visible_devices/error"}},
                 {"UUIDs not known",
                  [&](World& w) {
                    value("GPU-9")(w);
                    w.facts.nvml.gpus[1].uuid = {};
                  },
                  {}},
                 {"mixed", value("0,GPU-1abc"), {"cuda_visible_devices/warning/mixed"}},
                 {"repeated", value("0,0"), {"cuda_visible_devices/warning/repeated"}},
                 {"order of different models",
                  [&](World& w) {
                    value("0")(w);
                    w.facts.nvml.gpus[1].name =
                        known<std::string>("NVIDIA GeForce GTX 1080", SourceKind::nvml, "x");
                  },
                  {"cuda_visible_devices/note/order"}},
             });
}

TEST(TorchVariables, NameWhatIsIgnoredOrForbidden) {
  const auto conf = [](World& w) { set(w, "PYTORCH_ALLOC_CONF", "expandable_segments:True"); };
  EXPECT_EQ(brief(run(check_torch_variables, torch("2.11.0", "cu130", "13.0"))), Texts{});
  const std::pair<const char*, Texts> releases[] = {
      {"2.8.0", {"alloc_conf_ignored/warning/unknown_name"}},
      {"2.9.1", {"alloc_conf_ignored/warning/expandable_segments"}},
      {"2.11.0", {}}};
  for (const auto& [release, want] : releases) {
    World w = torch(release, "cu128", "12.8");
    conf(w);
    EXPECT_EQ(brief(run(check_torch_variables, w)), want) << release;
    set(w, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
    EXPECT_EQ(brief(run(check_torch_variables, w)), Texts{})
        << "the old name is read by every release";
  }
  World forced = torch("2.11.0", "cu130", "13.0");
  set(forced, "CUDA_FORCE_PTX_JIT", "1");
  EXPECT_EQ(brief(run(check_torch_variables, forced)), Texts{"ptx_jit_forced/error"});
  forced.facts.envs[0].binaries[0].device_code.push_back(ptx("80", "8.0"));
  EXPECT_EQ(brief(run(check_torch_variables, forced)), Texts{"ptx_jit_forced/warning/slow"});
  forced.facts.variables[0].value = "0";
  EXPECT_EQ(brief(run(check_torch_variables, forced)), Texts{});
}

TEST(TorchInstall, FindsTwoTorchesLeftoversAndHoles) {
  expect_all(check_torch_install,
             [] {
               World w = torch("2.11.0", "cu130", "13.0");
               torch_of(w).location = "/env/sp/torch-2.11.0.dist-info";
               return w;
             },
             {
                 {"whole", [](World&) {}, {}},
                 {"two in one directory",
                  [](World& w) { add(w, "torch", "2.6.0"); },
                  {"torch_install_broken/error/two_records"}},
                 {"two directories",
                  [](World& w) { add(w, "torch", "2.6.0", "/other/torch-2.6.0.dist-info"); },
                  {"torch_install_broken/warning/two_directories"}},
                 {"conda below",
                  [](World& w) {
                    add(w, "pytorch", "2.5.1", "/env/conda-meta/pytorch.json", "conda-meta");
                  },
                  {"torch_install_broken/error/conda_and_pip"}},
                 {"conda's own dist-info",
                  [](World& w) {
                    torch_of(w).installer = "conda";
                    add(w, "pytorch", "2.5.1", "/env/conda-meta/pytorch.json", "conda-meta");
                  },
                  {}},
                 {"leftover",
                  [](World& w) { add(w, "~orch", "2.6.0", "/env/sp/~orch-2.6.0.dist-info"); },
                  {"torch_install_broken/warning/leftover"}},
                 {"holes",
                  [](World& w) { torch_of(w).files_missing = 3; },
                  {"torch_install_broken/error/missing_files"}},
                 {"no RECORD",
                  [](World& w) { torch_of(w).has_record = false; },
                  {"torch_install_broken/warning/no_record"}},
                 {"numpy twice",
                  [](World& w) {
                    add(w, "numpy", "2.0.0");
                    add(w, "numpy", "1.26.4", "/env/conda-meta/numpy.json", "conda-meta");
                  },
                  {"pip_over_conda/warning"}},
                 {"unreadable",
                  [](World& w) {
                    w.facts.envs[0].distributions = missing<std::vector<facts::Distribution>>(
                        WhyNot::no_permission, SourceKind::file, "/env");
                  },
                  {"torch_install_broken/unknown"}},
             });
  expect_all(check_half_removed, [] { return torch("2.11.0", "cu130", "13.0"); },
             {
                 {"whole", [](World& w) { add(w, "numpy", "2.0.0"); }, {}},
                 {"holes",
                  [](World& w) { add(w, "numpy", "2.0.0").files_missing = 1; },
                  {"package_half_removed/warning"}},
                 {"leftover",
                  [](World& w) { add(w, "~umpy", "2.0.0", "/env/sp/~umpy-2.0.0.dist-info"); },
                  {"package_half_removed/note/leftover"}},
             });
}

TEST(PythonChoice, TheActiveOneLacksTorch) {
  World w = torch("2.11.0", "cu130", "13.0");
  EXPECT_EQ(brief(run(check_python_choice, w)), Texts{});
  w.facts.envs[0].active = false;
  facts::PythonEnv empty;
  empty.path = "/other";
  empty.active = true;
  empty.distributions = known(std::vector<facts::Distribution>{}, SourceKind::file, "/other");
  w.facts.envs.insert(w.facts.envs.begin(), empty);
  EXPECT_EQ(brief(run(check_python_choice, w)), Texts{"wrong_python_env/warning"});
  // A system's Python cannot be activated: the environment in use gets a torch of its own.
  w.facts.envs[1].kind = "system";
  EXPECT_EQ(brief(run(check_python_choice, w)), Texts{"wrong_python_env/warning/own_torch"});
  w.facts.envs[1].kind = "venv";
  w.facts.envs[0].distributions =
      missing<std::vector<facts::Distribution>>(WhyNot::no_permission, SourceKind::file, "/other");
  EXPECT_EQ(brief(run(check_python_choice, w)), Texts{"wrong_python_env/unknown"});
}

TEST(TorchFamily, ThePackagesOwnPinGoesBeforeTheTable) {
  expect_all(
      check_torch_family, [] { return torch("2.7.1", "cu126", "12.6"); },
      {
          {"alone", [](World&) {}, {}},
          {"belongs, by the table", [](World& w) { add(w, "torchvision", "0.22.1"); }, {}},
          {"another, by the table",
           [](World& w) { add(w, "torchvision", "0.21.0"); },
           {"torch_family_mismatch/error"}},
          {"another, which no table knows",
           [](World& w) { add(w, "torchvision", "0.21.7"); },
           {"torch_family_mismatch/error/other"}},
          {"patch release",
           [](World& w) { add(w, "torchvision", "0.22.0").needs = {"torch (==2.7.0)"}; },
           {"torch_family_mismatch/note/patch"}},
          {"another, by its pin",
           [](World& w) { add(w, "torchvision", "0.21.0").needs = {"torch==2.6.0"}; },
           {"torch_family_mismatch/error"}},
          {"CPU build",
           [](World& w) { add(w, "torchvision", "0.22.1+cpu"); },
           {"torch_family_mismatch/error/cpu"}},
          {"another CUDA major",
           [](World& w) { add(w, "torchvision", "0.22.1+cu118"); },
           {"torch_family_mismatch/error/cuda"}},
          {"another CUDA minor", [](World& w) { add(w, "torchvision", "0.22.1+cu128"); }, {}},
          {"triton as pinned",
           [](World& w) {
             torch_of(w).needs = {"triton==3.3.1; platform_system == \"Linux\""};
             add(w, "triton", "3.3.1");
           },
           {}},
          {"other triton",
           [](World& w) {
             torch_of(w).needs = {"triton==3.3.1"};
             add(w, "triton", "3.5.0");
           },
           {"torch_family_mismatch/warning/triton"}},
      });
}

TEST(NvidiaPackages, PinsAndSharedFolders) {
  expect_all(check_nvidia_packages,
             [] {
               World w = torch("2.11.0", "cu130", "13.0");
               torch_of(w).needs = {"nvidia-cudnn-cu13==9.19.0.56; sys_platform == 'linux'"};
               return w;
             },
             {
                 {"as pinned", [](World& w) { add(w, "nvidia-cudnn-cu13", "9.19.0.56"); }, {}},
                 {"other version",
                  [](World& w) { add(w, "nvidia-cudnn-cu13", "9.20.0.48"); },
                  {"nvidia_pip_pkg_conflict/warning/version"}},
                 {"two majors, one folder",
                  [](World& w) {
                    add(w, "nvidia-cudnn-cu13", "9.19.0.56");
                    add(w, "nvidia-cudnn-cu12", "9.10.2.21");
                  },
                  {"nvidia_pip_pkg_conflict/warning"}},
                 {"two majors, two folders",
                  [](World& w) {
                    add(w, "nvidia-cublas", "13.1");
                    add(w, "nvidia-cublas-cu12", "12.8");
                  },
                  {}},
                 {"not installed", [](World&) {}, {}},
             });
}

facts::LoadedLibrary library(const char* name, const char* path, const char* by,
                             const char* version, const char* major, bool inside) {
  return {name, path, by, "/env/torch/lib/libtorch_cuda.so", "", version, major, inside};
}

TEST(CudaLibraries, WrongPlaceAndNoPlace) {
  expect_all(
      check_cuda_libraries, [] { return torch("2.7.1", "cu126", "12.6"); },
      {
          {"own",
           [](World& w) {
             w.facts.envs[0].loads = {library("libcudart.so.12", "/env/nvidia/libcudart.so.12",
                                              "RPATH", "12.6.77", "12", true)};
           },
           {}},
          {"not found",
           [](World& w) {
             w.facts.envs[0].loads = {library("libcudart.so.12", "", "", "", "12", false)};
           },
           {"cuda_lib_not_found/error"}},
          {"sub-library",
           [](World& w) {
             w.facts.envs[0].loads = {library("libcudnn_ops.so.9", "", "dlopen", "", "12", false)};
           },
           {"cuda_lib_not_found/warning/sublibrary"}},
          {"a part of cuDNN comes from the system because the environment lacks it",
           [](World& w) {
             w.facts.envs[0].loads = {
                 library("libcudnn.so.9", "/env/nvidia/libcudnn.so.9", "RPATH", "9.19", "", true),
                 library("libcudnn_adv.so.9", "/lib/libcudnn_adv.so.9", "ld.so.cache", "9.14", "",
                         false)};
           },
           {"cuda_libs_shadowed/warning/cache"}},
          {"the driver's libcuda is another question",
           [](World& w) {
             w.facts.envs[0].loads = {library("libcuda.so.1", "", "", "", "", false)};
           },
           {}},
          {"foreign without an own copy",
           [](World& w) {
             w.facts.envs[0].loads = {library("libcublas.so.12", "/usr/local/cuda/libcublas.so.12",
                                              "ld.so.cache", "12.4", "12", false)};
           },
           {}},
          {"foreign instead of the own",
           [](World& w) {
             w.facts.envs[0].loads = {library("libcublas.so.12", "/usr/local/cuda/libcublas.so.12",
                                              "LD_LIBRARY_PATH", "12.4", "12", false)};
             w.facts.envs[0].shadowed = {library("libcublas.so.12", "/env/nvidia/libcublas.so.12",
                                                 "RPATH", "12.6", "12", true)};
           },
           {"cuda_libs_shadowed/warning/ld_library_path"}},
          {"another major",
           [](World& w) {
             w.facts.envs[0].loads = {library("libcublas.so.11", "/usr/local/cuda/libcublas.so.11",
                                              "ld.so.cache", "11.8", "11", false)};
           },
           {"cuda_libs_shadowed/warning/cache"}},
          {"parts of two cuDNN",
           [](World& w) {
             w.facts.envs[0].loads = {
                 library("libcudnn.so.9", "/env/nvidia/libcudnn.so.9", "RPATH", "9.5", "12", true),
                 library("libcudnn_ops.so.9", "/opt/libcudnn_ops.so.9", "LD_LIBRARY_PATH", "9.1",
                         "12", false)};
             w.facts.envs[0].shadowed = {library("libcudnn_ops.so.9",
                                                 "/env/nvidia/libcudnn_ops.so.9", "RUNPATH", "9.5",
                                                 "12", true)};
           },
           {"cuda_libs_shadowed/warning/ld_library_path"}},
      });
}

TEST(SystemLibraries, ComparesNeedsWithWhatLoads) {
  const auto base = [] {
    World w = torch("2.7.1", "cu126", "12.6");
    w.facts.envs[0].binaries[0].glibc = "2.28";
    w.facts.envs[0].binaries[0].glibcxx = "3.4.22";
    w.facts.system.glibc = file<std::string>("2.28", "libc.so.6");
    w.facts.system.glibcxx = file<std::string>("3.4.22", "libstdc++.so.6");
    return w;
  };
  expect_all(
      check_system_libraries, base,
      {
          {"just enough", [](World&) {}, {}},
          {"old glibc",
           [](World& w) { w.facts.system.glibc = file<std::string>("2.17", "libc.so.6"); },
           {"glibc_too_old/error/release"}},
          {"glibc not readable",
           [](World& w) {
             w.facts.system.glibc =
                 missing<std::string>(WhyNot::malformed, SourceKind::file, "libc.so.6");
           },
           {"glibc_too_old/unknown"}},
          {"musl",
           [](World& w) { w.facts.system.libc = file<std::string>("musl", "ld-musl"); },
           {"glibc_too_old/error/musl"}},
          {"old libstdc++",
           [](World& w) { w.facts.system.glibcxx = file<std::string>("3.4.19", "libstdc++.so.6"); },
           {"libstdcxx_too_old/error"}},
          {"the environment's own counts",
           [](World& w) {
             w.facts.system.glibcxx = file<std::string>("3.4.19", "x");
             w.facts.envs[0].loads = {
                 library("libstdc++.so.6", "/env/lib/libstdc++.so.6", "RPATH", "6.0.33", "", true)};
           },
           {}},
          {"the environment's own is old",
           [](World& w) {
             w.facts.envs[0].kind = "conda";
             w.facts.envs[0].loads = {
                 library("libstdc++.so.6", "/env/lib/libstdc++.so.6", "RPATH", "6.0.19", "", true)};
           },
           {"libstdcxx_too_old/error/conda"}},
          {"version of the own not known",
           [](World& w) {
             w.facts.envs[0].loads = {
                 library("libstdc++.so.6", "/env/lib/libstdc++.so.6", "RPATH", "", "", true)};
           },
           {"libstdcxx_too_old/unknown"}},
      });
}

TEST(Dependencies, NumpyAndMkl) {
  World old = torch("2.2.2", "cu121", "12.1");
  add(old, "numpy", "2.1.0");
  EXPECT_EQ(brief(run(check_dependencies, old)), Texts{"dependency_too_new/warning"});
  World first = torch("2.3.0", "cu121", "12.1");
  add(first, "numpy", "2.1.0");
  EXPECT_EQ(brief(run(check_dependencies, first)), Texts{});
  World conda = torch("2.3.1", "cu121", "12.1");
  add(conda, "pytorch", "2.3.1", "/env/conda-meta/p.json", "conda-meta").tag =
      "py3.11_cuda12.1_cudnn8.9.2_0";
  add(conda, "mkl", "2024.1.0", "/env/conda-meta/mkl.json", "conda-meta");
  EXPECT_EQ(brief(run(check_dependencies, conda)), Texts{"dependency_too_new/warning/mkl"});
}

TEST(ExtensionBinaries, BitsandbytesTakesTheSameMajorFromRelease050) {
  const auto with = [](const char* version, const char* cuda, const char* name) {
    World w = torch("2.15.0", "cu132", cuda);
    add(w, "bitsandbytes", version);
    w.facts.envs[0].binaries.push_back(
        extension("bitsandbytes", std::string("bitsandbytes/") + name));
    return brief(run(check_extension_binaries, w));
  };
  EXPECT_EQ(with("0.48.2", "13.0", "libbitsandbytes_cuda130.so"), Texts{});
  EXPECT_EQ(with("0.48.2", "13.2", "libbitsandbytes_cuda130.so"),
            Texts{"ext_binary_missing/error"});
  EXPECT_EQ(with("0.50.2", "13.2", "libbitsandbytes_cuda130.so"), Texts{});
  EXPECT_EQ(with("0.50.2", "13.2", "libbitsandbytes_cuda128.so"),
            Texts{"ext_binary_missing/error"});
}

TEST(HostLimits, SayWhatStarvesTheGpu) {
  World w = torch("2.11.0", "cu130", "13.0");
  w.facts.system.cpus = file<uint64_t>(32, "affinity");
  w.facts.system.cpu_limit = file(2.0, "cpu.max");
  w.facts.system.shm_bytes = file<uint64_t>(64u << 20, "/dev/shm");
  const Input input = make_input(w.facts, knowledge::Knowledge::builtin());
  std::vector<std::string> keys;
  for (const Link& link : list_host_limits(input)) keys.push_back(link.key);
  EXPECT_EQ(keys, (Texts{"host_limits.cpu.few", "host_limits.shm.small"}));
}

}  // namespace surroundings_test
}  // namespace cufit::checks
