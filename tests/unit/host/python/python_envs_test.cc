// SPDX-License-Identifier: Apache-2.0
// Situations of taxonomy-env.yaml that an environment shows: each must give facts from which a
// check can decide.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "host/probe.h"
#include "unit/host/temporary_tree.h"

namespace cufit::host {
namespace python_envs_test {

const std::string k_site = "/venv/lib/python3.12/site-packages";

class Environment : public testing::Test {
 protected:
  void SetUp() override {
    tree.write("/lib64/ld-linux-x86-64.so.2", elf());
    tree.write("/lib/x86_64-linux-gnu/libc.so.6", elf());
    tree.write("/venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n");
    tree.write("/venv/bin/python", "");
    variables["PATH"] = "/venv/bin:/usr/bin";
    std::filesystem::permissions(tree.at("/venv/bin/python"), std::filesystem::perms::all);
    std::filesystem::create_directories(tree.at(k_site));
  }

  static std::string elf() {
    std::string out(64, '\0');
    out.replace(0, 4, "\177ELF");
    out[4] = 2;
    out[5] = out[6] = 1;
    out[16] = 3;
    out[18] = 62;
    return out;
  }

  void add_distribution(const std::string& name, const std::string& version,
                        const std::string& record = "", const std::string& more = "",
                        const std::string& installer = "pip\n") const {
    std::string folder = k_site + "/" + name + "-" + version + ".dist-info";
    tree.write(folder + "/METADATA", "Metadata-Version: 2.1\nName: " + name +
                                         "\nVersion: " + version + "\n" + more + "\nbody\n");
    tree.write(folder + "/INSTALLER", installer);
    if (!record.empty()) tree.write(folder + "/RECORD", record);
  }
  void add_torch(const std::string& version, const std::string& cuda) const {
    tree.write(k_site + "/torch/__init__.py", "");
    tree.write(k_site + "/torch/version.py", "__version__ = '" + version +
                                                 "'\ndebug = False\ncuda = " + cuda +
                                                 "\ngit_version = 'x'\nhip = None\n");
    add_distribution("torch", version, "torch/__init__.py,,\ntorch/version.py,,\n");
  }

  // Builds a real shared object; false without a compiler.
  bool build(const std::string& path, const std::string& source, const std::string& flags) const {
    tree.write("/src.cc", source);
    std::filesystem::create_directories(std::filesystem::path(tree.at(path)).parent_path());
    std::string command =
        "g++ -shared -fPIC -nostdlib -o " + tree.at(path) + " " + tree.at("/src.cc") +
        " -Wl,--no-as-needed -Wl,--unresolved-symbols=ignore-all " + flags + " 2>/dev/null";
    return std::system(command.c_str()) == 0;
  }

  facts::Facts read(std::vector<std::string> dirs = {}, bool everywhere = false) const {
    facts::Facts facts;
    ProbeOptions options;
    options.search_everywhere = everywhere;
    options.env_dirs = std::move(dirs);
    RealHost host = tree.host(variables);
    read_python_envs(host, options, facts);
    return facts;
  }

  // An environment with torch, of a tool that keeps them there.
  void add_other(const std::string& folder) const {
    tree.write(folder + "/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
    tree.write(folder + "/lib/python3.11/site-packages/torch/__init__.py", "");
  }

  static const facts::Distribution* find(const facts::PythonEnv& env, const std::string& name) {
    for (const facts::Distribution& one : *env.distributions)
      if (one.name == name) return &one;
    return nullptr;
  }

  TemporaryTree tree;
  std::map<std::string, std::string> variables;
};

TEST_F(Environment, ThoseOfToolsAreFound) {
  variables["HOME"] = "/home/u";
  const std::string home = "/home/u";
  const std::vector<std::string> folders = {home + "/.virtualenvs/torch",
                                            home + "/.cache/pypoetry/virtualenvs/a-py3.11",
                                            home + "/.cache/uv/environments-v2/script-1",
                                            home + "/.local/share/uv/tools/x",
                                            home + "/miniconda3/envs/train",
                                            "/data/envs/far"};
  for (const std::string& folder : folders) add_other(folder);
  tree.write(home + "/.conda/environments.txt", "/data/envs/far\n/gone\n");
  tree.write(home + "/.virtualenvs/empty/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
  const facts::Facts facts = read({}, true);
  for (const std::string& folder : folders)
    EXPECT_TRUE(std::any_of(facts.envs.begin(), facts.envs.end(), [&](const facts::PythonEnv& env) {
      return env.path == folder;
    })) << folder;
  EXPECT_EQ(facts.envs.size(), folders.size() + 1);  // /venv is on PATH
}

TEST_F(Environment, ActiveOneIsThatOfPath) {
  tree.write("/opt/conda/conda-meta/python-3.11.9-h955ad1f_0.json", "{}");
  tree.write("/opt/conda/lib/python3.11/os.py", "");
  tree.write("/opt/conda/lib/python3.11/site-packages/torch/version.py",
             "__version__ = '2.5.1'\ncuda = '12.4'\n");
  variables["CONDA_PREFIX"] = "/opt/conda";
  facts::Facts facts = read();
  ASSERT_EQ(facts.envs.size(), 2u);
  EXPECT_EQ(facts.envs[0].path, "/venv");
  EXPECT_TRUE(facts.envs[0].active);
  EXPECT_EQ(facts.envs[0].found_by, "PATH");
  EXPECT_EQ(*facts.envs[0].python, "3.12.3");
  EXPECT_FALSE(facts.envs[0].torch.version);
  EXPECT_EQ(facts.envs[0].torch.version.why, WhyNot::not_present);
  // wrong_python_env: the other one has it.
  EXPECT_EQ(facts.envs[1].kind, "conda");
  EXPECT_EQ(facts.envs[1].found_by, "CONDA_PREFIX");
  EXPECT_FALSE(facts.envs[1].active);
  EXPECT_EQ(*facts.envs[1].python, "3.11.9");
  EXPECT_EQ(*facts.envs[1].torch.version, "2.5.1");
  EXPECT_EQ(facts.envs[1].torch.variant, "cu124");
}

TEST_F(Environment, GivenFoldersOfEveryKind) {
  add_torch("2.11.0+cu130", "'13.0'");
  tree.link("/project/.venv", "/venv");
  for (const std::string& dir : {std::string("/venv"), k_site, std::string("/project")}) {
    facts::Facts facts = read({dir});
    ASSERT_EQ(facts.envs.size(), 1u) << dir;
    EXPECT_EQ(facts.envs[0].found_by, "--env");
    EXPECT_EQ(facts.envs[0].torch.variant, "cu130") << dir;
    EXPECT_EQ(*facts.envs[0].python, "3.12.3") << dir;
  }
  tree.write("/packages/torch/version.py", "__version__ = '2.0.0'\n");
  facts::Facts facts = read({"/packages", "/nothing", "/src"});
  ASSERT_EQ(facts.envs.size(), 1u);
  EXPECT_EQ(facts.envs[0].kind, "folder");
  EXPECT_EQ(facts.envs[0].torch.cuda.why, WhyNot::malformed)
      << "no line about CUDA is not the same as CPU-only";
  EXPECT_EQ(facts.problems.size(), 2u);
}

// torch's own libraries hang on extras of cuda-toolkit since 2.11; an extra may ask for the next one.
TEST_F(Environment, RequirementsOfExtrasThatSomebodyAsksFor) {
  add_torch("2.11.0", "'13.0'");
  add_distribution("asks", "1", "", "Requires-Dist: cuda-toolkit[cublas,all_math]==13.0.2\n");
  add_distribution("cuda-toolkit", "13.0.2", "",
                   "Requires-Dist: nvidia-cublas==13.1.*; extra == 'cublas'\n"
                   "Requires-Dist: nvidia-cufft==12.0.*; extra == 'cufft'\n"
                   "Requires-Dist: cuda-toolkit[cusparse]; extra == 'all-math'\n"
                   "Requires-Dist: nvidia-cusparse==12.6.*; extra == 'cusparse'\n"
                   "Requires-Dist: old; python_full_version < '3.12.3'\n"
                   "Requires-Dist: new; python_full_version >= '3.12.3'\n");
  const facts::Facts facts = read();
  const facts::Distribution* found = find(facts.envs.at(0), "cuda-toolkit");
  ASSERT_NE(found, nullptr);
  std::vector<std::string> needs = found->needs;
  std::sort(needs.begin(), needs.end());
  EXPECT_EQ(needs, (std::vector<std::string>{"cuda-toolkit[cusparse]", "new",
                                             "nvidia-cublas==13.1.*", "nvidia-cusparse==12.6.*"}));
}

TEST_F(Environment, VariantOfTorch) {
  struct Row {
    const char *version, *cuda, *variant;
  };
  for (Row row : {Row{"2.5.1+cpu", "None", "cpu"}, Row{"2.5.1", "None", "cpu"},
                  Row{"2.7.1+cu126", "'12.6'", "cu126"}, Row{"2.5.1", "'12.4'", "cu124"},
                  Row{"2.1.0+cu121.with.pypi.cudnn", "'12.1'", "cu121"},
                  Row{"2.5.0a0+872d972e41.nv24.8", "'12.6'", "cu126"}}) {
    add_torch(row.version, row.cuda);
    facts::PythonEnv env = std::move(read().envs.at(0));
    EXPECT_EQ(env.torch.variant, row.variant) << row.version;
    EXPECT_EQ(env.torch.cuda.value.has_value(), std::string(row.cuda) != "None") << row.version;
    if (!env.torch.cuda) {
      EXPECT_EQ(env.torch.cuda.why, WhyNot::not_present);
    }
  }
}

TEST_F(Environment, BrokenAndLeftOverInstallations) {
  add_distribution("torch", "2.11.0",
                   "torch/__init__.py,,\ntorch/lib/libtorch_cuda.so,,\ntorch/lib/libc10.so,,\n");
  tree.write(k_site + "/torch/lib/libc10.so", "not ELF");
  tree.write(k_site + "/~orch/__init__.py", "");
  tree.write(k_site + "/~orch-2.1.0.dist-info/METADATA", "Name: torch\nVersion: 2.1.0\n");
  add_distribution("half", "1.0");
  facts::Facts facts = read();
  const facts::PythonEnv& env = facts.envs.at(0);
  const facts::Distribution* torch = find(env, "torch");
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->files_recorded, 3u);
  EXPECT_EQ(torch->files_missing, 2u);
  EXPECT_EQ(torch->first_missing, "torch/lib/libtorch_cuda.so");
  EXPECT_FALSE(find(env, "half")->has_record);
  EXPECT_EQ(std::count_if(env.distributions->begin(), env.distributions->end(),
                          [](const facts::Distribution& one) {
                            return one.name == "~orch" && one.kind == "leftover";
                          }),
            2);
  ASSERT_EQ(env.binaries.size(), 1u);
  EXPECT_EQ(env.binaries[0].package, "torch");
  ASSERT_EQ(env.binaries[0].damage.size(), 1u);
  EXPECT_EQ(env.binaries[0].damage[0].what, "not an ELF file");
  EXPECT_EQ(env.binaries[0].damage[0].offset, 0u);
  EXPECT_NE(env.binaries[0].unreadable, "");
}

TEST_F(Environment, TwoVersionsOfOnePackageAreBothListed) {
  add_distribution("nvidia_cublas_cu12", "12.4.5.8", "nvidia/cublas/lib/libcublas.so.12,,\n");
  add_distribution("nvidia_cublas_cu12", "12.6.4.1", "nvidia/cublas/lib/libcublas.so.12,,\n");
  facts::Facts facts = read();
  EXPECT_EQ(std::count_if(
                facts.envs[0].distributions->begin(), facts.envs[0].distributions->end(),
                [](const facts::Distribution& one) { return one.name == "nvidia-cublas-cu12"; }),
            2);
}

TEST_F(Environment, NeedsAreThoseOfThisMachine) {
  add_distribution(
      "torchvision", "0.26.0", "torchvision/__init__.py,,\n",
      "Requires-Dist: torch==2.11.0\nRequires-Dist: gdown; extra == \"gdown\"\nRequires-Dist: w; "
      "sys_platform == \"win32\"\n");
  EXPECT_EQ(find(read().envs[0], "torchvision")->needs,
            (std::vector<std::string>{"torch==2.11.0"}));
}

TEST_F(Environment, ExtensionOfAnotherTorchHasUnresolvedSymbols) {
  add_torch("2.11.0+cu130", "'13.0'");
  if (!build(k_site + "/torch/lib/libc10.so", "namespace c10 { void good() {} }",
             "-Wl,-soname,libc10.so"))
    GTEST_SKIP() << "no g++ to build the objects with";
  build(k_site + "/torch/lib/libtorch_cpu.so", "namespace at { void there() {} }",
        "-Wl,-soname,libtorch_cpu.so");
  build(k_site + "/torch/lib/libtorch_python.so", "", "-Wl,-soname,libtorch_python.so");
  build(k_site + "/ext_cuda.cpython-311-x86_64-linux-gnu.so",
        "namespace c10 { void good(); void gone(int); } namespace at { void there(); }\n"
        "void f() { c10::good(); c10::gone(1); at::there(); }",
        "-L" + tree.at(k_site + "/torch/lib") + " -lc10 -l:libtorch_cpu.so -Wl,-soname,ext");
  add_distribution("ext", "1.0", "ext_cuda.cpython-311-x86_64-linux-gnu.so,,\n");
  facts::Facts facts = read();
  auto& binaries = facts.envs.at(0).binaries;
  auto ext = std::find_if(binaries.begin(), binaries.end(),
                          [](const facts::Binary& one) { return one.package == "ext"; });
  ASSERT_NE(ext, binaries.end());
  EXPECT_EQ(ext->unresolved, (std::vector<std::string>{"_ZN3c104goneEi"}));
  EXPECT_EQ(ext->unresolved_count, 1u);
  EXPECT_EQ(ext->python_tag, "cpython-311");
  EXPECT_EQ(ext->path, "lib/python3.12/site-packages/ext_cuda.cpython-311-x86_64-linux-gnu.so");
}

TEST_F(Environment, LibrariesOfAnotherCudaAreNamed) {
  add_torch("2.11.0+cu130", "'13.0'");
  const std::string lib = k_site + "/nvidia/cu13/lib/";
  if (!build(lib + "libcudart.so.13", "", "-Wl,-soname,libcudart.so.13")) GTEST_SKIP() << "no g++";
  build("/other/libcudart.so.13", "", "-Wl,-soname,libcudart.so.13");
  build(k_site + "/torch/lib/libtorch_global_deps.so", "",
        tree.at(lib + "libcudart.so.13") +
            " -Wl,--enable-new-dtags,-rpath,'$ORIGIN/../../nvidia/cu13/lib'");
  build(k_site + "/torch/_C.cpython-312-x86_64-linux-gnu.so", "",
        tree.at(lib + "libcudart.so.13") + " " + tree.at("/gone.so"));
  add_distribution("nvidia_cuda_runtime", "13.0.96", "nvidia/cu13/lib/libcudart.so.13,,\n");
  variables["LD_LIBRARY_PATH"] = "/other";
  facts::Facts facts = read();
  const facts::PythonEnv& env = facts.envs.at(0);
  auto loaded =
      std::find_if(env.loads.begin(), env.loads.end(),
                   [](const facts::LoadedLibrary& one) { return one.name == "libcudart.so.13"; });
  ASSERT_NE(loaded, env.loads.end());
  EXPECT_EQ(loaded->path, "/other/libcudart.so.13");
  EXPECT_EQ(loaded->by, "LD_LIBRARY_PATH");
  EXPECT_FALSE(loaded->inside);
  ASSERT_EQ(env.shadowed.size(), 1u);
  EXPECT_EQ(env.shadowed[0].by, "RUNPATH");
  EXPECT_EQ(env.shadowed[0].package, "nvidia-cuda-runtime 13.0.96");
  EXPECT_EQ(env.shadowed[0].cuda_major, "13");
}

TEST_F(Environment, MissingLibraryHasNoPath) {
  add_torch("2.11.0+cu130", "'13.0'");
  if (!build("/tmp/libcublas.so.13", "", "-Wl,-soname,libcublas.so.13")) GTEST_SKIP() << "no g++";
  build(k_site + "/torch/_C.cpython-312-x86_64-linux-gnu.so", "", tree.at("/tmp/libcublas.so.13"));
  facts::Facts facts = read();
  ASSERT_EQ(facts.envs.at(0).loads.size(), 2u);
  const facts::LoadedLibrary& missing = facts.envs[0].loads[1];
  EXPECT_EQ(missing.name, "libcublas.so.13");
  EXPECT_EQ(missing.path, "");
  EXPECT_EQ(missing.cuda_major, "13");
  EXPECT_NE(missing.asked_by.find("torch/_C."), std::string::npos);
}

TEST_F(Environment, CudnnPartsComeFromItsOwnStrings) {
  add_torch("2.11.0+cu130", "'13.0'");
  const std::string lib = k_site + "/nvidia/cudnn/lib/";
  if (!build(lib + "libcudnn.so.9",
             "extern const char a[] = \"libcudnn_ops.so\"; extern const char b[] = "
             "\"libcudnn_new_part.so\";",
             "-Wl,-soname,libcudnn.so.9 -Wl,--enable-new-dtags,-rpath,'$ORIGIN'")) {
    GTEST_SKIP() << "no g++";
  }
  build(lib + "libcudnn_ops.so.9", "", "-Wl,-soname,libcudnn_ops.so.9");
  build(k_site + "/torch/_C.cpython-312-x86_64-linux-gnu.so", "",
        tree.at(lib + "libcudnn.so.9") +
            " -Wl,--disable-new-dtags,-rpath,'$ORIGIN/../nvidia/cudnn/lib'");
  facts::Facts facts = read();
  std::map<std::string, std::string> by;
  for (const facts::LoadedLibrary& one : facts.envs.at(0).loads)
    by[one.name] = one.path.empty() ? "missing" : one.by;
  EXPECT_EQ(by["libcudnn.so.9"], "RPATH");
  EXPECT_EQ(by["libcudnn_ops.so.9"], "RUNPATH");
  EXPECT_EQ(by["libcudnn_new_part.so.9"], "missing");
}

TEST_F(Environment, CondaAndPipOfOnePackage) {
  tree.write(
      "/c/conda-meta/pytorch-2.5.1-cuda126_py312.json",
      R"({"name":"pytorch","version":"2.5.1","build":"cuda126_py312","depends":["libtorch 2.5.1"],"files":["lib/libgone.so"]})");
  tree.write("/c/conda-meta/python-3.12.7-h_0.json", "{}");
  tree.write("/c/lib/python3.12/os.py", "");
  tree.write("/c/lib/python3.12/site-packages/torch-2.6.0.dist-info/METADATA",
             "Name: torch\nVersion: 2.6.0\n");
  tree.write("/c/lib/python3.12/site-packages/torch-2.6.0.dist-info/INSTALLER", "pip\n");
  facts::Facts facts = read({"/c"});
  const facts::PythonEnv& env = facts.envs.at(0);
  EXPECT_EQ(env.installer, "conda");
  EXPECT_EQ(find(env, "pytorch")->kind, "conda-meta");
  EXPECT_EQ(find(env, "pytorch")->files_missing, 1u);
  EXPECT_EQ(find(env, "torch")->installer, "pip");
}

// Bytes that are no metadata and no version.py: both files are named, and the rest of the report
// still comes.
TEST_F(Environment, GarbageIsNamedAndTheRestStillComes) {
  add_torch("2.11.0+cu130", "'13.0'");
  tree.write(k_site + "/torch/version.py", std::string("\x00\xff\x10garbage\n", 12));
  tree.write(k_site + "/foo-1.0.dist-info/METADATA", std::string("\x7f\x00\x01\x02", 4));
  add_distribution("numpy", "2.1.0", "numpy/__init__.py,,\n");
  facts::Facts facts = read();
  ASSERT_EQ(facts.envs.size(), 1u);
  auto named = [&](const std::string& part) {
    return std::any_of(facts.problems.begin(), facts.problems.end(),
                       [&](const std::string& problem) { return contains(problem, part); });
  };
  EXPECT_TRUE(named("foo-1.0.dist-info"));
  EXPECT_TRUE(named("torch/version.py"));
  EXPECT_EQ(facts.envs[0].torch.version.why, WhyNot::malformed);
  ASSERT_NE(find(facts.envs[0], "foo"), nullptr);
  EXPECT_EQ(find(facts.envs[0], "foo")->version, "1.0");
  EXPECT_NE(find(facts.envs[0], "numpy"), nullptr);
}

TEST_F(Environment, WhoMayInstallIntoIt) {
  tree.write("/usr/lib/python3.12/os.py", "");
  tree.write("/usr/bin/python3.12", "");
  tree.write("/usr/lib/python3.12/EXTERNALLY-MANAGED", "[externally-managed]\n");
  tree.write("/usr/bin/uv", "");
  std::filesystem::permissions(tree.at("/usr/bin/uv"), std::filesystem::perms::all);
  facts::Facts facts = read({"/venv", "/usr"});
  ASSERT_EQ(facts.envs.size(), 2u);
  // pip asks for the marker outside of virtual environments alone.
  EXPECT_FALSE(facts.envs[0].externally_managed);
  EXPECT_TRUE(facts.envs[1].externally_managed);
  EXPECT_FALSE(facts.envs[1].makes_venv.value_or(true));  // Debian ships ensurepip apart
  EXPECT_EQ(facts.system.uv.value_or(""), "/usr/bin/uv");
  tree.write("/usr/lib/python3.12/ensurepip/__init__.py", "");
  std::filesystem::remove(tree.at("/usr/bin/uv"));
  facts = read({"/usr"});
  EXPECT_TRUE(facts.envs[0].makes_venv.value_or(false));
  EXPECT_EQ(facts.system.uv.why, WhyNot::not_present);
}

TEST_F(Environment, TheLockThatItFollows) {
  tree.write("/p/.venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n");
  std::filesystem::create_directories(tree.at("/p/.venv/lib/python3.12/site-packages"));
  EXPECT_EQ(read({"/p/.venv"}).envs.at(0).project, "");
  tree.write("/p/poetry.lock", "");
  facts::Facts facts = read({"/p/.venv"});
  EXPECT_EQ(facts.envs.at(0).installer, "poetry");
  tree.write("/p/uv.lock", "");
  facts = read({"/p/.venv"});
  EXPECT_EQ(facts.envs.at(0).installer, "uv");
  EXPECT_TRUE(ends_with(facts.envs.at(0).project, "/p")) << facts.envs.at(0).project;
}

TEST_F(Environment, WhatItsProjectSays) {
  tree.write("/p/.venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n");
  std::filesystem::create_directories(tree.at("/p/.venv/lib/python3.12/site-packages"));
  tree.write("/p/pyproject.toml",
             "[project]\nname = 'p'\nrequires-python = '>=3.9'\n"
             "[tool.uv.sources]\ntorch = [{ index = 'pt', marker = \"sys_platform == 'linux'\" }]\n"
             "[[tool.uv.index]]\nname = 'pt'\nurl = 'https://me:secret@example.org/cu126'\n"
             "explicit = true\n[[tool.uv.index]]\nurl = 'https://example.org/simple'\n");
  tree.write("/p/pdm.lock", "");
  facts::PythonEnv env = read({"/p/.venv"}).envs.at(0);
  EXPECT_EQ(env.installer, "pdm");
  EXPECT_EQ(env.project_python, ">=3.9");
  EXPECT_TRUE(env.project_indexes.empty());
  tree.write("/p/uv.lock", "");
  env = read({"/p/.venv"}).envs.at(0);
  EXPECT_EQ(env.project_python, ">=3.9");
  ASSERT_EQ(env.project_indexes.size(), 2u);
  EXPECT_EQ(env.project_indexes[0].name, "pt");
  EXPECT_EQ(env.project_indexes[0].url.find("secret"), std::string::npos);
  EXPECT_TRUE(env.project_indexes[0].is_explicit);
  EXPECT_EQ(env.project_indexes[0].packages, (std::vector<std::string>{"torch"}));
  EXPECT_FALSE(env.project_indexes[1].is_explicit);
  tree.write("/p/pyproject.toml", "[project\n");  // no TOML
  EXPECT_EQ(read({"/p/.venv"}).envs.at(0).project_python, "");
}

TEST_F(Environment, WhatItsPixiManifestHasOfConda) {
  tree.write("/w/.pixi/envs/default/conda-meta/history", "");
  tree.write("/w/.pixi/envs/default/conda-meta/python-3.11.9-h955ad1f_1_cpython.json", "{}");
  std::filesystem::create_directories(
      tree.at("/w/.pixi/envs/default/lib/python3.11/site-packages"));
  tree.write("/w/pixi.toml", "[dependencies]\npytorch = '*'\npython = '3.11.*'\n");
  const facts::PythonEnv env = read({"/w/.pixi/envs/default"}).envs.at(0);
  EXPECT_EQ(env.installer, "pixi");
  EXPECT_TRUE(ends_with(env.project, "/w")) << env.project;
  EXPECT_EQ(env.project_packages, (std::vector<std::string>{"pytorch"}));
}

}  // namespace python_envs_test
}  // namespace cufit::host
