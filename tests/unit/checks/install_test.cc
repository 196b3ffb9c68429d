// SPDX-License-Identifier: Apache-2.0
// Install steps: in whose way a command is written, which torch is chosen, which driver, and that the
// engine, asked again after a step, finds what it cured gone.
#include <gtest/gtest.h>

#include "checks/evidence.h"
#include "checks/install/after_step.h"
#include "checks/install/fix_plan.h"
#include "checks/install/torch_step.h"
#include "checks/install/torch_command.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace install_test {

using namespace world;
using knowledge::Knowledge;

std::string packages(const facts::PythonEnv& env, const std::vector<std::string>& requirements) {
  const World w;
  return install_packages(make_input(w.facts, Knowledge::builtin()), env, requirements);
}

// On a Linux machine, or where `facts` say.
std::string command(const facts::PythonEnv& env, const char* torch, const char* tag,
                    const facts::Facts& facts = World().facts) {
  return install_command(make_input(facts, Knowledge::builtin()), env, torch, tag);
}

TEST(InstallCommand, InTheEnvironmentsOwnWay) {
  struct Case {
    const char* installer;
    const char* kind;
    const char* torch;
    const char* tag;
    const char* want;
  };
  const char* const url = "https://download.pytorch.org/whl/cu126";
  const std::string index = std::string(" --index-url ") + url;
  const std::pair<Case, std::string> cases[] = {
      // The default Python index carries cu126 for 2.7.1, so no option is needed.
      {{"pip", "venv", "2.7.1", "cu126"}, "'/my env/bin/python' -m pip install torch==2.7.1"},
      {{"pip", "venv", "2.14.1", "cu126"},
       "'/my env/bin/python' -m pip install torch==2.14.1+cu126" + index},
      {{"uv", "venv", "2.14.1", "cu126"},
       "uv pip install --python '/my env/bin/python' torch==2.14.1+cu126" + index},
      {{"pip", "image", "2.14.1", "cu126"},
       "python3 -m pip install --no-cache-dir torch==2.14.1+cu126" + index},
      {{"pip", "venv", "2.11.0", "cu130"},  // installed already: the plain name would be satisfied
       "'/my env/bin/python' -m pip install --force-reinstall --no-deps torch==2.11.0"},
      // A pip torch inside a conda environment is replaced by pip.
      {{"conda", "conda", "2.14.1", "cu126"},
       "'/my env/bin/python' -m pip install torch==2.14.1+cu126" + index},
  };
  for (const auto& [one, want] : cases) {
    facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/my env");
    env.installer = one.installer;
    env.kind = one.kind;
    EXPECT_EQ(command(env, one.torch, one.tag), want) << one.installer << " " << one.kind;
  }
  facts::PythonEnv conda = torch_env("2.11.0", "cu130", "13.0", {}, "/opt/conda");
  conda.installer = "conda";
  (*conda.distributions.value)[0].kind = "conda-meta";
  // conda's own is taken out first.
  EXPECT_EQ(command(conda, "2.14.1", "cu126"),
            "conda remove -y -p /opt/conda pytorch && /opt/conda/bin/python -m pip install "
            "torch==2.14.1+cu126" +
                index);
  EXPECT_EQ(packages(conda, {"numpy==1.26.4"}),
            "conda install -p /opt/conda -c conda-forge numpy=1.26.4");
}

TEST(InstallCommand, ARepairIsForced) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/e");
  const auto repair = [&] {
    return repair_command(make_input(World().facts, Knowledge::builtin()), env, "2.11.0", "cu130");
  };
  EXPECT_EQ(repair(), "/e/bin/python -m pip install --force-reinstall --no-deps torch==2.11.0");
  env.installer = "uv";
  EXPECT_EQ(repair(), "uv pip install --python /e/bin/python --reinstall --no-deps torch==2.11.0");
  env.project = "/e p";
  EXPECT_EQ(repair(), "uv sync --project '/e p' --reinstall-package torch");
  env.installer = "poetry";
  EXPECT_EQ(repair(), "poetry run python -m pip install --force-reinstall --no-deps torch==2.11.0");
  env.installer = "conda";
  (*env.distributions.value)[0].kind = "conda-meta";
  EXPECT_EQ(repair(), "conda install --force-reinstall -p /e -c conda-forge pytorch=2.11.0+cu130");
}

TEST(InstallCommand, ABuildFromSourceGoesIntoTheEnvironment) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {});
  EXPECT_EQ(pip_install_of(env), "/env/bin/python -m pip install");
  env.installer = "uv";
  EXPECT_EQ(pip_install_of(env), "uv pip install --python /env/bin/python");
  env.kind = "image";
  EXPECT_EQ(pip_install_of(env), "/env/bin/python -m pip install");
}

TEST(InstallCommand, NamesTheIndexWhereTheDefaultOneIsNotForCuda) {
  facts::PythonEnv env = torch_env("2.3.0", "cpu", "", {}, "(claimed)");
  const std::string plain = "python -m pip install torch==2.7.1";
  const std::string named = plain + "+cu126 --index-url https://download.pytorch.org/whl/cu126";
  facts::Facts facts;
  facts.origin = "text";
  EXPECT_EQ(command(env, "2.7.1", "cu126", facts), named);
  facts.system.distribution = known<std::string>("Windows 11", SourceKind::claimed, "t:1");
  EXPECT_EQ(command(env, "2.7.1", "cu126", facts), named);
  facts.system.distribution = known<std::string>("Ubuntu 22.04", SourceKind::claimed, "t:1");
  EXPECT_EQ(command(env, "2.7.1", "cu126", facts), plain);
  facts.system.distribution = known<std::string>("Windows 11", SourceKind::claimed, "t:1");
  facts.system.wsl = known<std::string>("2", SourceKind::claimed, "t:1");
  EXPECT_EQ(command(env, "2.7.1", "cu126", facts), plain);
}

TEST(InstallCommand, ANewEnvironmentWhereThePythonHasNoWheel) {
  World w;
  facts::PythonEnv env = torch_env("2.4.1", "cu121", "12.1", {});
  const auto fresh = [&] {
    return install_in_new(make_input(w.facts, Knowledge::builtin()), env, "2.11.0", "cu128",
                          "3.12");
  };
  const std::string words =
      "torch==2.11.0+cu128 --index-url https://download.pytorch.org/whl/cu128";
  const auto by = [&](const std::string& uv) {
    return uv + " venv --python 3.12 torch-env && " + uv +
           " pip install --python torch-env/bin/python " + words;
  };
  // Nobody knows whether Python 3.12 is installed; uv fetches it, and pip gets uv.
  EXPECT_EQ(fresh(), "/env/bin/python -m pip install uv && " + by("/env/bin/python -m uv"));
  w.facts.system.uv = file<std::string>("/usr/bin/uv", "/usr/bin/uv");
  EXPECT_EQ(fresh(), by("uv"));
  w.facts.system.uv = missing<std::string>(WhyNot::not_present, SourceKind::env, "PATH");
  env.externally_managed = file<std::string>("/usr/lib/python3.12/EXTERNALLY-MANAGED", "");
  EXPECT_EQ(fresh(), "/env/bin/python -m venv .venv && .venv/bin/python -m pip install uv && " +
                         by(".venv/bin/python -m uv"));
  env.externally_managed = {};
  env.installer = "conda";
  (*env.distributions.value)[0].kind = "conda-meta";
  EXPECT_EQ(fresh(),
            "conda create -y -n torch-env -c conda-forge python=3.12 pip && conda run -n torch-env "
            "python -m pip install " +
                words);
  env.installer = "pip";
  (*env.distributions.value)[0].kind = "dist-info";
  w.facts.system.uv = {};
  w.facts.system.distribution = known<std::string>("Windows 11", SourceKind::claimed, "t:1");
  EXPECT_EQ(fresh(), "py -3.12 -m pip install " + words);
}

// The Python that made the environment is gone, so its version may be as well.
TEST(InstallCommand, ANewEnvironmentOfWhateverPythonIsThere) {
  World w;
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {});
  const auto beside = [&] {
    return install_beside(make_input(w.facts, Knowledge::builtin()), env, "2.11.0", "cu130");
  };
  EXPECT_EQ(beside(),
            "python3 -m venv torch-env && torch-env/bin/python -m pip install torch==2.11.0");
  w.facts.system.uv = file<std::string>("/usr/bin/uv", "/usr/bin/uv");
  EXPECT_EQ(beside(),
            "uv venv torch-env && uv pip install --python torch-env/bin/python torch==2.11.0");
}

TEST(InstallCommand, APackageIsTakenOutInTheSameWay) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/e");
  const auto remove = [&] {
    return remove_command(make_input(World().facts, Knowledge::builtin()), env, "cupy-cuda12x");
  };
  EXPECT_EQ(remove(), "/e/bin/python -m pip uninstall -y cupy-cuda12x");
  env.installer = "uv";
  EXPECT_EQ(remove(), "uv pip uninstall --python /e/bin/python cupy-cuda12x");
  env.project = "/p";
  EXPECT_EQ(remove(), "uv remove --project /p cupy-cuda12x");
  env.installer = "poetry";
  EXPECT_EQ(remove(), "poetry --directory /p remove cupy-cuda12x");
}

// 2.14.1 has no file for Python 3.15 on the default index, PyTorch's own has.
TEST(InstallCommand, TheDefaultIndexLacksSomePythons) {
  facts::PythonEnv env = torch_env("2.11.0", "cu126", "12.6", {}, "/e");
  EXPECT_EQ(command(env, "2.14.1", "cu130"), "/e/bin/python -m pip install torch==2.14.1");
  env.python = file<std::string>("3.15.0", "pyvenv.cfg");
  EXPECT_EQ(command(env, "2.14.1", "cu130"),
            "/e/bin/python -m pip install torch==2.14.1+cu130 --index-url "
            "https://download.pytorch.org/whl/cu130");
}

// What somebody put into a system Python past its marker is mended there.
TEST(InstallCommand, ARepairStaysWhereTheFilesAre) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/usr");
  env.externally_managed = file<std::string>("/usr/lib/python3.12/EXTERNALLY-MANAGED", "");
  const World world;
  const Input input = make_input(world.facts, Knowledge::builtin());
  EXPECT_EQ(install_packages(input, env, {"torchvision==0.26.0+cu126", "six==1.16.0"},
                             InstallKind::repair),
            "/usr/bin/python -m pip install --break-system-packages --force-reinstall --no-deps "
            "torchvision==0.26.0+cu126 six==1.16.0 --extra-index-url "
            "https://download.pytorch.org/whl/cu126");
}

TEST(InstallCommand, NamesTheMirrorThatIsSet) {
  facts::Facts facts = World().facts;
  facts.system.pytorch_index = file<std::string>("https://mirror.example/whl", "cufit.toml");
  EXPECT_EQ(command(torch_env("2.11.0", "cu130", "13.0", {}, "/e"), "2.11.0", "cu126", facts),
            "/e/bin/python -m pip install torch==2.11.0+cu126 --index-url "
            "https://mirror.example/whl/cu126");
}

TEST(InstallCommand, AReleaseForThePartnersThatAreThere) {
  World w;
  w.gpu("NVIDIA GeForce RTX 3090", "8.6").driver("580.95.05");
  facts::PythonEnv env = torch_env("1.0.9", "cpu", "", {});  // no release of the table
  const Input input = make_input(w.facts, Knowledge::builtin());
  EXPECT_EQ(pick_wheel_for_machine(input, &env)->torch, "2.15.0");
  facts::Distribution audio;
  audio.name = "torchaudio";
  env.distributions.value->push_back(audio);
  EXPECT_EQ(pick_wheel_for_machine(input, &env)->torch, "2.11.0");
}

TEST(InstallCommand, CondasTorchOfATextIsReplacedByPipAndNothingElse) {
  facts::PythonEnv env = torch_env("2.4.0", "cpu", "", {}, "(claimed)");
  env.installer = "conda";
  (*env.distributions.value)[0].kind = "conda-meta";
  EXPECT_TRUE(replaces_conda_torch(env));
  EXPECT_EQ(command(env, "2.14.1", "cu126"),
            "conda remove -y pytorch && python -m pip install torch==2.14.1+cu126 "
            "torchvision==0.29.1+cu126 --index-url https://download.pytorch.org/whl/cu126");
  EXPECT_EQ(packages(env, {"mkl==2024.0"}), "conda install -c conda-forge mkl=2024.0");
  env.path = "/opt/conda";
  EXPECT_FALSE(replaces_conda_torch(env));
}

TEST(InstallCommand, PartnersComeAlong) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {});
  facts::Distribution vision;
  vision.name = "torchvision";
  env.distributions.value->push_back(vision);
  EXPECT_EQ(command(env, "2.14.1", "cu126"),
            "/env/bin/python -m pip install torch==2.14.1+cu126 torchvision==0.29.1+cu126 "
            "--index-url https://download.pytorch.org/whl/cu126");
}

// PEP 668: pip refuses a distribution's own Python.
TEST(InstallCommand, AnExternallyManagedPythonGetsAVenv) {
  facts::Facts facts = World().facts;
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/usr");
  env.kind = "system";
  env.distributions = file(std::vector<facts::Distribution>(), "/usr/lib/python3/dist-packages");
  env.interpreter = file<std::string>("/usr/bin/python3.11", "/usr/bin/python3.11");
  env.externally_managed = file<std::string>("/usr/lib/python3.11/EXTERNALLY-MANAGED", "");
  env.makes_venv = file(true, "/usr/lib/python3.11/ensurepip");
  const std::string install = ".venv/bin/python -m pip install torch==2.15.0";
  EXPECT_EQ(command(env, "2.15.0", "cu132", facts),
            "/usr/bin/python3.11 -m venv .venv && " + install);
  env.makes_venv = file(false, "/usr/lib/python3.11/ensurepip");
  facts.system.distribution_id = file<std::string>("debian 12", "/etc/os-release");
  EXPECT_EQ(
      command(env, "2.15.0", "cu132", facts),
      "sudo apt-get update && sudo apt-get install -y python3-venv && /usr/bin/python3.11 -m venv "
      ".venv && " +
          install);
  facts.system.root = file(true, "/proc/self/status");  // an image has no sudo
  EXPECT_EQ(
      command(env, "2.15.0", "cu132", facts),
      "apt-get update && apt-get install -y python3-venv && /usr/bin/python3.11 -m venv .venv "
      "&& " +
          install);
  facts.system.uv = file<std::string>("/usr/bin/uv", "/usr/bin/uv");
  EXPECT_EQ(command(env, "2.15.0", "cu132", facts),
            "uv venv .venv && uv pip install --python .venv/bin/python torch==2.15.0");
  env.kind = "image";
  env.makes_venv = file(true, "/usr/lib/python3.11/ensurepip");
  EXPECT_EQ(command(env, "2.15.0", "cu132", facts),
            "python3 -m venv /opt/venv && /opt/venv/bin/python -m pip install --no-cache-dir "
            "torch==2.15.0");
}

TEST(InstallCommand, APythonWithoutPip) {
  facts::Facts facts = World().facts;
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/e");
  env.makes_venv = file(true, "/usr/lib/python3.11/ensurepip");
  facts.system.uv = missing<std::string>(WhyNot::not_present, SourceKind::env, "PATH");
  const std::string words =
      "torch==2.11.0+cu126 --index-url https://download.pytorch.org/whl/cu126";
  EXPECT_EQ(command(env, "2.11.0", "cu126", facts),
            "/e/bin/python -m ensurepip && /e/bin/python -m pip install " + words);
  env.installer = "uv";  // its uv is gone
  EXPECT_EQ(command(env, "2.11.0", "cu126", facts),
            "/e/bin/python -m ensurepip && /e/bin/python -m pip install " + words);
  env.installer = "pip";
  facts.system.uv = file<std::string>("/usr/bin/uv", "/usr/bin/uv");
  EXPECT_EQ(command(env, "2.11.0", "cu126", facts),
            "uv pip install --python /e/bin/python " + words);
  facts::Distribution pip;
  pip.name = "pip";
  env.distributions.value->push_back(pip);
  EXPECT_EQ(command(env, "2.11.0", "cu126", facts), "/e/bin/python -m pip install " + words);
}

// What a lock says is put back by the next sync: the lock is changed.
TEST(InstallCommand, ALockIsChangedAndNotItsEnvironment) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/w/my app/.venv");
  env.installer = "uv";
  env.project = "/w/my app";
  const std::string url = "https://download.pytorch.org/whl/cu126";
  EXPECT_EQ(
      command(env, "2.11.0", "cu126"),
      "uv add --frozen --project '/w/my app' torch==2.11.0+cu126 --index pytorch-cu126=" + url +
          " && sed -i '/^name *= *\"pytorch-cu126\"/,/^\\[/{/^explicit/d;s/^name.*/&"
          "\\nexplicit = true/}' '/w/my app/pyproject.toml' && uv sync --inexact --project "
          "'/w/my app'");
  env.installer = "poetry";
  EXPECT_EQ(command(env, "2.11.0", "cu126"),
            "poetry --directory '/w/my app' source add --priority=explicit pytorch-cu126 " + url +
                " && poetry --directory '/w/my app' add --source pytorch-cu126 "
                "torch==2.11.0+cu126");
  env = torch_env("2.11.0", "cu130", "13.0", {}, "/w/.cufit/envs/cu130");
  EXPECT_EQ(command(env, "2.11.0", "cu126"), "cufit lock -o /w && cufit env create --lock /w");
  EXPECT_EQ(repair_command(make_input(World().facts, Knowledge::builtin()), env, "2.11.0", "cu130"),
            "cufit env create --force cu130 --lock /w");
}

// The index that is there keeps its name, and what is bound to one is not taken from the default.
TEST(InstallCommand, AProjectKeepsItsIndex) {
  facts::PythonEnv env = torch_env("2.11.0", "cu126", "12.6", {}, "/p/.venv");
  env.installer = "uv";
  env.project = "/p";
  env.project_indexes = {
      {"pt", "https://download.pytorch.org/whl/cu130/", true, {"torch", "torchvision"}}};
  EXPECT_EQ(command(env, "2.14.1", "cu130"),
            "uv add --frozen --project /p torch==2.14.1+cu130 --index "
            "pt=https://download.pytorch.org/whl/cu130 && uv sync --inexact --project /p");
  env.project_indexes[0].is_explicit = false;
  EXPECT_NE(command(env, "2.14.1", "cu130").find("sed -i '/^name *= *\"pt\"/"), std::string::npos);
  env.project_indexes[0].name = "p;touch PWNED";
  EXPECT_EQ(command(env, "2.14.1", "cu130").find("PWNED"), std::string::npos);
}

TEST(InstallCommand, APdmOrPipenvProjectIsChangedByItsOwnProgram) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/w/a b/.venv");
  const std::string url = "https://download.pytorch.org/whl/cu126";
  env.project = "/w/a b";
  env.installer = "pdm";
  EXPECT_EQ(command(env, "2.11.0", "cu126"),
            "pdm config -p '/w/a b' --local pypi.pytorch-cu126.url " + url +
                " && pdm add -p '/w/a b' torch==2.11.0+cu126");
  EXPECT_EQ(packages(env, {"numpy<2"}), "pdm add -p '/w/a b' 'numpy<2'");
  env.installer = "pipenv";
  EXPECT_EQ(command(env, "2.11.0", "cu126"),
            "PIPENV_PIPFILE='/w/a b/Pipfile' pipenv install torch==2.11.0+cu126 --index " + url);
}

TEST(InstallCommand, APixiProjectTakesTheWheel) {
  facts::PythonEnv env = torch_env("2.6.0", "cpu", "", {}, "/w/.pixi/envs/default");
  env.installer = "pixi";
  env.project = "/w";
  env.project_packages = {"pytorch", "torchvision"};
  (*env.distributions.value)[0].installer = "conda";
  facts::Distribution record = (*env.distributions.value)[0];
  record.name = "pytorch", record.kind = "conda-meta", record.version = "2.6.0";
  env.distributions.value->push_back(record);
  EXPECT_EQ(command(env, "2.11.0", "cu126"),
            "pixi remove --manifest-path /w pytorch torchvision && pixi add --manifest-path /w "
            "--pypi torch==2.11.0+cu126 --index https://download.pytorch.org/whl/cu126");
  EXPECT_EQ(packages(env, {"mkl==2024.0"}), "pixi add --manifest-path /w mkl=2024.0");
}

TEST(InstallCommand, TheEmbeddedPythonOfABundle) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "(claimed)");
  env.interpreter =
      known<std::string>("D:\\ComfyUI\\python_embeded\\python.exe", SourceKind::claimed, "t:1");
  EXPECT_EQ(packages(env, {"triton-windows==3.5.0"}),
            "D:\\ComfyUI\\python_embeded\\python.exe -s -m pip install triton-windows==3.5.0");
  env.interpreter =
      known<std::string>("C:\\My Apps\\venv\\Scripts\\python.exe", SourceKind::claimed, "t:1");
  EXPECT_EQ(packages(env, {"numpy==1.26.4"}),
            "& 'C:\\My Apps\\venv\\Scripts\\python.exe' -m pip install numpy==1.26.4");
}

// Names and versions from outside are one word for the shell, in the address as well.
TEST(InstallCommand, QuotesWhatComesFromOutside) {
  facts::PythonEnv env = torch_env("2.1.0", "cu121;touch${IFS}PWNED", "12.1", {}, "/e");
  const std::string evil = command(env, "2.1.0", "cu121;touch${IFS}PWNED");
  EXPECT_EQ(evil.find("PWNED"), std::string::npos) << evil;
  EXPECT_EQ(packages(env, {"a;touch PWNED"}), "/e/bin/python -m pip install 'a;touch PWNED'");
  env.path = "/e $(touch PWNED)";
  EXPECT_EQ(packages(env, {"a==1"}), "'/e $(touch PWNED)/bin/python' -m pip install a==1");
}

// Only what is wrong is installed: torch itself stays and is not fetched again.
TEST(InstallCommand, PartnersAlone) {
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/e");
  facts::Distribution vision;
  vision.name = "torchvision";
  vision.version = "0.25.0";
  env.distributions.value->push_back(vision);
  const World world;
  const Input input = make_input(world.facts, Knowledge::builtin());
  EXPECT_EQ(partners_command(input, env, "2.11.0", "cu130"),
            "/e/bin/python -m pip install torchvision==0.26.0");
  EXPECT_EQ(partners_command(input, env, "2.11.0", "cu126"),
            "/e/bin/python -m pip install torchvision==0.26.0+cu126 --index-url "
            "https://download.pytorch.org/whl/cu126");
}

// A build that is on no index ("2.5.0a0+nv24.08") is not named in a command.
TEST(InstallCommand, NamesNoWheelThatIsNot) {
  facts::PythonEnv env = torch_env("2.5.0a0", "nv24.08", "12.6", {}, "/e");
  EXPECT_EQ(command(env, "2.5.0a0", "nv24.08"), "/e/bin/python -m pip install torch==2.15.0");
  EXPECT_EQ(command(env, "2.6.0", "cu128"), "/e/bin/python -m pip install torch==2.15.0");
  EXPECT_EQ(command(env, "99.0.0", "cu130"),  // newer than the table: it is there
            "/e/bin/python -m pip install torch==99.0.0+cu130 --index-url "
            "https://download.pytorch.org/whl/cu130");
}

TEST(TorchStep, TheSameReleaseInAnotherVariantFirst) {
  World w;
  w.gpu("NVIDIA GeForce RTX 3060", "8.6").driver("535.183.01");
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", k_cu130);
  const TorchStep step = torch_step(make_input(w.facts, Knowledge::builtin()), env);
  EXPECT_EQ(step.pick->torch, "2.11.0");
  EXPECT_EQ(step.pick->tag, "cu129");  // of CUDA 12, as the driver is
  EXPECT_EQ(step.blocked, "");
}

facts::Distribution pinner(const char* name, const char* version, const char* needs) {
  facts::Distribution made;
  made.name = name;
  made.version = version;
  made.kind = "dist-info";
  made.needs = {needs};
  return made;
}

// A bound of an installed package leaves older releases: the newest of them, not the newest of all.
TEST(TorchStep, AnInstalledPackageTakesWhatIsChosen) {
  World w;
  w.gpu("NVIDIA GeForce RTX 5090", "12.0").driver("580.95.05");
  facts::PythonEnv env = torch_env("2.5.1", "cu124", "12.4", {});
  env.distributions.value->push_back(pinner("olderlib", "1.0", "torch<2.9"));
  const TorchStep step = torch_step(make_input(w.facts, Knowledge::builtin()), env);
  EXPECT_EQ(step.pick->torch, "2.8.0");
}

// uv refuses a release that leaves out a Python of the project's range.
TEST(TorchStep, TheReleaseSuitsTheProjectsPythons) {
  World w;
  w.gpu("NVIDIA GeForce RTX 5090", "12.0").driver("580.95.05");
  facts::PythonEnv env = torch_env("2.6.0", "cu124", "12.4", {}, "/p/.venv");
  env.python = file<std::string>("3.11.7", "pyvenv.cfg");
  env.installer = "uv";
  env.project = "/p";
  const auto step = [&] { return torch_step(make_input(w.facts, Knowledge::builtin()), env); };
  EXPECT_EQ(step().pick->torch, "2.15.0");
  env.project_python = ">=3.9,<3.13";
  EXPECT_EQ(step().command, "uv add --project /p torch==2.8.0");
  env.project_python = ">=3.8,<3.13";  // no release has both: the range is changed first
  EXPECT_EQ(step().command.rfind("sed -i 's/^requires-python *=.*/requires-python = \">=3.", 0), 0u)
      << step().command;
}

// Other environments belong to other programs; without one in use all are this machine's.
TEST(FixPlan, LeavesEnvironmentsAloneThatAreNotInUse) {
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("570.86.10");
  facts::PythonEnv used = torch_env("2.6.0", "cpu", "", {}, "/used");
  facts::PythonEnv other = torch_env("2.6.0", "cpu", "", {}, "/other");
  used.active = true;
  other.active = false;
  w.env(used).env(other);
  FixPlan plan = plan_fix(w.facts, Knowledge::builtin());
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].finding.subject, "env /used");
  EXPECT_EQ(plan.left_alone, 1u);
  w.facts.envs[0].active = false;
  plan = plan_fix(w.facts, Knowledge::builtin());
  EXPECT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.left_alone, 0u);
}

// What stands over the torch that a program wants goes back to it, in one step.
TEST(TorchStep, AProgramBringsItsTorchBack) {
  World w;
  w.gpu("NVIDIA GeForce RTX 4090", "8.9").driver("570.86.10");
  facts::PythonEnv env = torch_env("2.6.0", "cu124", "12.4", {});
  env.distributions.value->push_back(pinner("torchvision", "0.19.0", "torch==2.4.0"));
  facts::Distribution program = pinner("servit", "1.2", "torch==2.4.0");
  program.needs.push_back("torchvision==0.19");
  program.needs.push_back("xformers==0.0.27.post2");
  env.distributions.value->push_back(pinner("xformers", "0.0.28.post1", "torch==2.4.1"));
  env.distributions.value->push_back(program);
  w.env(env);
  const FixPlan plan = plan_fix(w.facts, Knowledge::builtin());
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_EQ(plan.steps[0].finding.args.at("command"), "/env/bin/python -m pip install servit==1.2");
  EXPECT_TRUE(plan.steps[0].simulated);
  for (const FixStep& step : plan.steps)
    EXPECT_NE(step.finding.id, "requirement_unmet") << step.finding.variant;
  // In a project torch itself is changed, once.
  env.installer = "uv";
  env.project = "/p";
  w.facts.envs[0] = env;
  const FixPlan project = plan_fix(w.facts, Knowledge::builtin());
  ASSERT_FALSE(project.steps.empty());
  EXPECT_EQ(project.steps[0].finding.args.at("command"),
            "uv add --project /p torch==2.4.0 torchvision==0.19.0");
}

// A program that pins torch is updated; its torch is not replaced.
TEST(TorchStep, AProgramThatPinsTorchIsUpdated) {
  World w;
  w.gpu("NVIDIA GeForce RTX 5090", "12.0").driver("580.95.05");
  facts::PythonEnv env = torch_env("2.5.1", "cu124", "12.4", {});
  env.distributions.value->push_back(pinner("vllm", "0.6.6", "torch==2.5.1"));
  const Input input = make_input(w.facts, Knowledge::builtin());
  const TorchStep step = torch_step(input, env);
  EXPECT_EQ(step.command, "/env/bin/python -m pip install --upgrade vllm");
  EXPECT_EQ(step.pin, "torch==2.5.1");
  // The newest torch runs its default variant here only with driver 580 or newer.
  w.facts.kernel.version = file<std::string>("570.86.10", "/sys/module/nvidia/version");
  const TorchStep later = torch_step(make_input(w.facts, Knowledge::builtin()), env);
  EXPECT_EQ(later.blocked, "pinned.driver_too");
  EXPECT_EQ(later.driver.branch, 580u);
  // A pin that another variant of the same release satisfies keeps nobody from the step.
  env = torch_env("2.7.1", "cu126", "12.6", {});
  env.distributions.value->push_back(pinner("vllm", "0.9.2", "torch==2.7.1"));
  const TorchStep same = torch_step(input, env);
  EXPECT_EQ(same.pick->torch + "+" + same.pick->tag, "2.7.1+cu128");
  EXPECT_EQ(same.blocked, "");
}

// Of several floors the largest counts, and a branch that is maintained is named.
TEST(DriverNeed, TheLargestOfAllFloors) {
  World w;
  w.gpu("NVIDIA GeForce RTX 5090", "12.0").driver("560.35.03");
  w.env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  const auto need = [&] { return driver_need(make_input(w.facts, Knowledge::builtin())); };
  EXPECT_EQ(need().floor, 580u);
  EXPECT_EQ(need().branch, 580u);
  EXPECT_TRUE(need().open_module);
  w.facts.envs[0] = torch_env("2.11.0", "cu128", "12.8", k_cu130);
  EXPECT_EQ(need().floor, 570u);
  EXPECT_EQ(need().branch, 580u);  // 570 is not maintained any more
  w.facts.nvml.gpus[0] = nvml_gpu(0, "NVIDIA A800-SXM4-80GB", "8.0");
  w.gpu("NVIDIA GeForce GTX 1080", "6.1");
  EXPECT_EQ(need().floor, 525u);
  EXPECT_EQ(need().branch, 580u);
  EXPECT_FALSE(need().open_module);
}

// A new environment with another Python takes the place of the one that has no wheel.
TEST(FixPlan, ANewEnvironmentCuresTheOldOne) {
  World w;
  facts::PythonEnv env = torch_env("2.4.1", "cu121", "12.1", k_cu126);
  env.python = file<std::string>("3.8.19", "pyvenv.cfg");
  w.env(env);
  const auto machine = assume(w.facts, {{"RTX 5090"}, "580.95.05"}, Knowledge::builtin());
  ASSERT_TRUE(machine);
  const FixPlan plan = plan_fix(*machine, Knowledge::builtin());
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].finding.variant, "python_too");
  EXPECT_TRUE(plan.steps[0].simulated);
  EXPECT_NE(plan.after, LinkState::broken);
}

// The CUDA build would run on the processor, and is several gigabytes larger.
TEST(TorchStep, AMachineWithoutAGpuTakesTheCpuBuild) {
  World w;
  facts::PythonEnv env = torch_env("2.11.0", "cu130", "13.0", {}, "/e");
  env.distributions = file(std::vector<facts::Distribution>(), "/e");
  env.torch = {};
  EXPECT_EQ(torch_step(make_input(w.facts, Knowledge::builtin()), env).command,
            "/e/bin/python -m pip install torch==2.15.0+cpu --index-url "
            "https://download.pytorch.org/whl/cpu");
  w.facts.system.wsl = file<std::string>("2", "/proc/version");  // whose GPU is on no bus
  EXPECT_EQ(torch_step(make_input(w.facts, Knowledge::builtin()), env).command,
            "/e/bin/python -m pip install torch==2.15.0");
}

// The step of one finding leads into the next, and the plan has both.
TEST(FixPlan, AsksTheEngineAgainAfterEachStep) {
  World w;
  w.env(torch_env("2.7.1", "cu126", "12.6", k_cu126));
  const auto machine = assume(w.facts, {{"RTX 5090"}, "560.35.03"}, Knowledge::builtin());
  ASSERT_TRUE(machine);
  const FixPlan plan = plan_fix(*machine, Knowledge::builtin());
  Texts ids;
  for (const FixStep& step : plan.steps) {
    ids.push_back(step.finding.id);
    EXPECT_TRUE(step.simulated) << step.finding.id;
  }
  EXPECT_EQ(ids, (Texts{"driver_too_old_for_gpu", "arch_gpu_too_new"}));
  EXPECT_EQ(plan.before, LinkState::broken);
  EXPECT_TRUE(plan.certain);
  EXPECT_NE(plan.after, LinkState::broken);
}

}  // namespace install_test
}  // namespace cufit::checks
