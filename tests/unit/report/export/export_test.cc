// SPDX-License-Identifier: Apache-2.0
#include "report/export.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "report/export/export_values.h"

namespace cufit::report {
namespace export_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

formats::PylockPackage package(const std::string& name, const std::string& version,
                               const std::string& file) {
  formats::PylockPackage out;
  out.name = name;
  out.version = version;
  formats::PylockFile wheel;
  wheel.name = file;
  wheel.url = "https://files.example/" + file;
  wheel.hashes = {{"sha256", std::string(64, 'a')}};
  out.wheels = {wheel};
  return out;
}

ExportClass sample(const std::string& name, const std::string& cuda) {
  ExportClass one;
  one.lock.name = name;
  one.lock.file = "pylock." + name + ".toml";
  one.lock.python = "3.12";
  one.lock.wheel.torch = "2.14.1";
  one.lock.wheel.tag = name;
  if (!cuda.empty()) one.lock.wheel.cuda = parse_version(cuda);
  one.lock.wheel.code = {{formats::CodeKind::cubin, "80", "", 1}};
  one.pylock.packages = {
      package("torch", "2.14.1+" + name, "torch-2.14.1+" + name + "-cp312-cp312-linux_x86_64.whl")};
  return one;
}

ExportView view_of(const std::string& to, std::vector<ExportClass> classes) {
  ExportView view{to, {}, std::move(classes), "", 0, "en", tables()};
  view.lock.path = "cufit.lock";
  for (const ExportClass& one : view.classes) view.lock.classes.push_back(one.lock);
  return view;
}

std::string error_of(const ExportView& view) {
  const auto files = export_files(view);
  return files ? "" : files.error().what;
}

TEST(Export, TheFamilyFloorIsTheLowestClass) {
  EXPECT_EQ(required_cuda(view_of("", {sample("cu130", "13.0.2"), sample("cu126", "12.6.3")})),
            "cuda>=12.0");
  EXPECT_EQ(required_cuda(view_of("", {sample("cu118", "11.8")})), "cuda>=11.0");
  EXPECT_EQ(required_cuda(view_of("", {sample("cu130", "13.0"), sample("cpu", "")})), "");
}

TEST(Export, CoverageTellsMachineCodeFromPtx) {
  resolve::Wheel wheel;
  wheel.code = {{formats::CodeKind::cubin, "86", "", 1}, {formats::CodeKind::ptx, "90", "8.4", 1}};
  const Coverage coverage = coverage_of(wheel, tables());
  EXPECT_EQ(coverage.by_code, (std::vector<ComputeCapability>{{8, 6}, {8, 9}}));
  ASSERT_FALSE(coverage.by_ptx.empty());
  EXPECT_EQ(coverage.by_ptx.front(), (ComputeCapability{9, 0}));
  for (const ComputeCapability& cc : known_capabilities("linux_x86_64", tables()))
    EXPECT_NE(cc, (ComputeCapability{8, 7}));  // Orin is no PC
}

TEST(Export, KubernetesNamesMinorsWhereAMajorIsServedInPart) {
  ExportClass one = sample("cu126", "12.6.3");
  one.lock.wheel.driver_min = parse_version("525.60.13");
  one.lock.wheel.driver_full = parse_version("560.35.05");
  one.lock.wheel.code = {{formats::CodeKind::cubin, "86", "", 1},
                         {formats::CodeKind::ptx, "120", "8.7", 1}};
  const auto files = export_files(view_of("k8s", {one}));
  ASSERT_TRUE(files) << files.error().text();
  const std::string& job = (*files)[0].text;
  EXPECT_TRUE(contains(job, "values: [\"524\"]"));
  EXPECT_TRUE(contains(job, "values: [\"8\"]"));
  EXPECT_TRUE(contains(job, "values: [\"6\", \"9\"]"));
  // PTX: a driver of the toolkit itself, and its CUDA version for the claim.
  EXPECT_TRUE(contains(job, "values: [\"559\"]"));
  const std::string& claim = (*files)[1].text;
  EXPECT_TRUE(contains(claim, "cudaDriverVersion.compareTo(semver('12.0.0')) >= 0"));
  EXPECT_TRUE(contains(claim, "cudaDriverVersion.compareTo(semver('12.6.0')) >= 0"));
  EXPECT_TRUE(contains(claim, "cudaComputeCapability.compareTo(semver('8.6.0')) >= 0"));
}

TEST(Export, PipNeedsAHashAndAPlainName) {
  ExportView view = view_of("pip", {sample("cu126", "12.6")});
  EXPECT_EQ(error_of(view), "");
  formats::PylockPackage& torch = view.classes[0].pylock.packages[0];
  torch.wheels[0].hashes = {{"md5", "00"}};
  EXPECT_TRUE(contains(error_of(view), "a file without a hash"));
  torch.wheels[0].hashes = {{"sha256", "aa --index-url x"}};
  EXPECT_TRUE(contains(error_of(view), "a file without a hash"));
  torch.wheels[0].hashes = {{"sha256", "aa"}};
  torch.name = "torch --pre";
  EXPECT_TRUE(contains(error_of(view), "not a package's name"));
  torch.name = "torch";
  torch.version = "2.14.1+cu126\n-r evil.txt";
  EXPECT_TRUE(contains(error_of(view), "is no version"));
  torch.version = "2.14.1+cu126";
  torch.wheels[0].url = "https://files.example/a b.whl";
  EXPECT_TRUE(contains(error_of(view), "no URL that can be written"));
  torch.wheels.clear();
  torch.vcs = "git https://git.example/mine";
  EXPECT_TRUE(contains(error_of(view), "has no hash"));
}

TEST(Export, PasswordsStayWhereTheyAre) {
  EXPECT_EQ(without_password("https://me:secret@index.example/whl"), "https://index.example/whl");
  EXPECT_EQ(without_password("https://index.example/a@b"), "https://index.example/a@b");
  EXPECT_EQ(without_password("https://index.example"), "https://index.example");
  EXPECT_EQ(without_password("https://me@index.example"), "https://index.example");
  ExportClass one = sample("cu126", "12.6");
  one.pylock.packages[0].wheels[0].url = "https://me:secret@files.example/x.whl";
  for (const char* to : {"pip", "uv"}) {
    const auto files = export_files(view_of(to, {one}));
    ASSERT_TRUE(files);
    EXPECT_FALSE(contains((*files)[0].text, "secret")) << to;
    EXPECT_TRUE(contains((*files)[0].text, "https://files.example/x.whl")) << to;
  }
}

TEST(Export, UvTakesTheIndexWhereItIsNamed) {
  ExportClass one = sample("cu126", "12.6");
  one.pylock.packages[0].index = "https://torch.example/whl/cu126";
  const auto files = export_files(view_of("uv", {one}));
  ASSERT_TRUE(files);
  EXPECT_TRUE(contains((*files)[0].text, "{ index = \"torch-cu126\", group = \"cu126\" }"));
  EXPECT_TRUE(contains((*files)[0].text, "url = \"https://torch.example/whl/cu126\""));
  EXPECT_FALSE(contains((*files)[0].text, "conflicts"));  // one group is in no conflict
  one.pylock.packages.clear();
  EXPECT_TRUE(contains(error_of(view_of("uv", {one})), "torch is not among its packages"));
}

TEST(Export, UvBindsEveryPackageToWhereTheLockHasItFrom) {
  ExportClass one = sample("cu124", "12.4");
  one.pylock.packages[0].index = "https://torch.example/whl/cu124";
  const auto add = [&](const char* name, const char* version, const char* index) {
    one.pylock.packages.push_back(
        package(name, version, std::string(name) + "-1-cp312-cp312-linux_x86_64.whl"));
    one.pylock.packages.back().index = index;
  };
  add("mypriv", "1.0", "https://me:secret@corp.example/simple");
  add("mycore", "3.0", "https://corp.example/simple");  // asked for by nobody
  add("torch-scatter", "2.1.2+pt25cu124", "https://pyg.example/whl");
  for (const char* name : {"a", "b", "c"}) add(name, "1", "https://default.example/simple");
  ExportView view = view_of("uv", {one});
  view.lock.requirements = {"mypriv"};
  const auto files = export_files(view);
  ASSERT_TRUE(files) << files.error().text();
  const std::string& text = (*files)[0].text;
  const auto bound = [&](const std::string& name, const std::string& index) {
    return contains(text,
                    "\"" + name + "\" = [\n  { index = \"" + index + "\", group = \"cu124\" },\n]");
  };
  const auto indexed = [&](const std::string& name, const std::string& url) {
    return contains(text, "[[tool.uv.index]]\nname = \"" + name + "\"\nurl = \"" + url +
                              "\"\nexplicit = true\n");
  };
  EXPECT_TRUE(bound("torch", "torch-cu124")) << text;
  EXPECT_TRUE(bound("mypriv", "index2-cu124")) << text;
  EXPECT_TRUE(bound("mycore", "index2-cu124")) << text;
  EXPECT_TRUE(bound("torch-scatter", "index3-cu124")) << text;
  EXPECT_TRUE(indexed("torch-cu124", "https://torch.example/whl/cu124"));
  EXPECT_TRUE(indexed("index2-cu124", "https://corp.example/simple"));
  EXPECT_TRUE(indexed("index3-cu124", "https://pyg.example/whl"));
  EXPECT_FALSE(contains(text, "secret"));
  EXPECT_FALSE(contains(text, "default.example"));  // nobody asked for those by name
}

TEST(Export, UvBindsAPrivateFileToItsAddress) {
  ExportClass one = sample("cu124", "12.4");
  for (const char* name : {"a", "b", "mypriv"})
    one.pylock.packages.push_back(
        package(name, "1", std::string(name) + "-1-cp312-cp312-linux_x86_64.whl"));
  one.pylock.packages.back().wheels[0].url = "https://corp.example/mypriv-1-py3-none-any.whl";
  const std::string text = (*export_files(view_of("uv", {one})))[0].text;
  EXPECT_TRUE(contains(text, "{ url = \"https://corp.example/mypriv-1-py3-none-any.whl\"")) << text;
  EXPECT_FALSE(contains(text, "\"a\" ="));
}

TEST(Export, OneImageHoldsOnePlatformAndAnyPythons) {
  ExportClass x86 = sample("cu126", "12.6"), arm = sample("cu130", "13.0");
  arm.lock.wheel.platform = "linux_aarch64";
  for (const char* to : {"dockerfile", "compose", "devcontainer", "apptainer", "k8s"})
    EXPECT_TRUE(contains(error_of(view_of(to, {x86, arm})), "one image holds one of them")) << to;
  ExportClass older = sample("cu118", "11.8");
  older.lock.python = "3.10";
  const auto files = export_files(view_of("dockerfile", {x86, older}));
  ASSERT_TRUE(files);
  EXPECT_TRUE(contains((*files)[0].text, "UV_PYTHON_DOWNLOADS=automatic"));
  EXPECT_TRUE(contains((*files)[0].text, "ARG BASE=python:3.12-slim\n"));
}

TEST(Export, AJobWithoutCudaAsksForNoGpu) {
  for (const char* to : {"k8s", "slurm"}) {
    ExportView view = view_of(to, {sample("cpu", "")});
    const auto files = export_files(view);
    ASSERT_TRUE(files) << files.error().text();
    ASSERT_EQ(files->size(), 1u) << to;  // no claim of GPUs, no prolog for them
    for (const char* gpu : {"nvidia.com/gpu", "--gres", "affinity", "runtimeClassName"})
      EXPECT_FALSE(contains((*files)[0].text, gpu)) << to << " " << gpu;
    EXPECT_TRUE(contains((*files)[0].text, "train.py")) << to;
    view.gpus = 2;
    EXPECT_TRUE(contains(error_of(view), "no class with CUDA is chosen, and `--gpus 2`")) << to;
  }
}

TEST(Export, TheEditorIsGivenAnInterpreterOnlyWhereOneFits) {
  const auto several =
      export_files(view_of("devcontainer", {sample("cu130", "13.0"), sample("cu126", "12.6")}));
  ASSERT_TRUE(several);
  EXPECT_TRUE(contains((*several)[0].text, "\"python.venvPath\": \"/opt/cufit/.cufit/envs\""));
  EXPECT_FALSE(contains((*several)[0].text, "defaultInterpreterPath"));
  const auto both =
      export_files(view_of("devcontainer", {sample("cu130", "13.0"), sample("cpu", "")}));
  ASSERT_TRUE(both);
  ASSERT_EQ(both->size(), 2u);
  EXPECT_TRUE(contains((*both)[0].text, "/opt/cufit/.cufit/envs/cu130/bin/python"));
  EXPECT_TRUE(contains((*both)[1].text, "/opt/cufit/.cufit/envs/cpu/bin/python"));
}

TEST(Export, ComposeNamesTheCommandThatMakesItsDockerfile) {
  ExportView view = view_of("compose", {sample("cu130", "13.0"), sample("cu126", "12.6")});
  EXPECT_TRUE(
      contains((*export_files(view))[0].text, "(`cufit export --to dockerfile -o Dockerfile`)"));
  view.lock.classes.push_back(sample("cpu", "").lock);
  EXPECT_TRUE(contains((*export_files(view))[0].text,
                       "(`cufit export --to dockerfile --class cu130 --class cu126 -o .`)"));
}

TEST(Export, TheProgramReachesAFolderOfItsUser) {
  const std::string text =
      (*export_files(view_of("dockerfile", {sample("cu130", "13.0")})))[0].text;
  EXPECT_TRUE(contains(text, "-v \"$PWD:/workspace\" torch python train.py"));
  EXPECT_LT(text.find("install --directory --owner=app --group=app /workspace"),
            text.find("USER 1000:1000"));
  EXPECT_TRUE(contains(text, "docker run --gpus all "));
  const std::string cpu = (*export_files(view_of("dockerfile", {sample("cpu", "")})))[0].text;
  EXPECT_FALSE(contains(cpu, "--gpus"));
}

}  // namespace export_test
}  // namespace cufit::report
