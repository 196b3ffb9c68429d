// SPDX-License-Identifier: Apache-2.0
// What came out after the tables were made, packages of several indexes, and what is built here.
#include <gtest/gtest.h>

#include "report/resolve.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;

Request asking(const std::vector<std::string>& texts) {
  Request request;
  for (const std::string& text : texts) {
    auto requirement = formats::parse_requirement(text);
    EXPECT_TRUE(requirement) << text;
    if (requirement) request.requirements.push_back(std::move(*requirement));
  }
  return request;
}

Answer answer_for(const std::string& target, const Request& request) {
  const auto described = described_target(target, Knowledge::builtin());
  EXPECT_TRUE(described) << target;
  return resolve(*described, request, Knowledge::builtin());
}

const Companion* companion(const Choice& choice, const std::string& package) {
  for (const Companion& one : choice.companions)
    if (one.package == package) return &one;
  return nullptr;
}

std::string step(const Answer& answer, const Request& request) {
  return report::install_line(answer.usable.front(), answer.target, request, Knowledge::builtin(),
                              nullptr);
}

TEST(NewerThanTables, ATorchBeyondTheLastRowIsUnknownAndNotAbsent) {
  const Request request = asking({"torch>=99.1"});
  const Answer answer = answer_for("RTX 3060,580", request);
  EXPECT_TRUE(answer.usable.empty());
  EXPECT_EQ(answer.beyond_tables, "torch>=99.1");
  // What an older row could have met is a plain no.
  EXPECT_EQ(answer_for("RTX 3060,580", asking({"torch<1.0"})).beyond_tables, "");
  EXPECT_EQ(answer_for("RTX 5090,535", asking({"torch"})).beyond_tables, "");
}

TEST(NewerThanTables, ACompanionBeyondTheLastRowIsTheIndexesBusiness) {
  const Request request = asking({"torch", "bitsandbytes>=99.1"});
  const Answer answer = answer_for("RTX 3060,580", request);
  ASSERT_FALSE(answer.usable.empty());
  const Companion* found = companion(answer.usable.front(), "bitsandbytes");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->beyond, "bitsandbytes>=99.1");
  EXPECT_NE(step(answer, request).find("'bitsandbytes>=99.1'"), std::string::npos);
  // Between two rows nothing is beyond.
  EXPECT_TRUE(answer_for("RTX 3060,580", asking({"bitsandbytes<0.1"})).usable.empty());
}

TEST(Companions, TheFileOfTheDefaultIndexHasOneCuda) {
  // xformers of the default index is built for CUDA 12: beside a torch of CUDA 13 both come from
  // PyTorch's own index.
  const Request request = asking({"torch", "xformers"});
  const Answer answer = answer_for("RTX 3060,580", request);
  ASSERT_FALSE(answer.usable.empty());
  const Choice& best = answer.usable.front();
  ASSERT_TRUE(best.wheel.cuda);
  EXPECT_EQ(best.wheel.cuda->part(0), 13u);
  EXPECT_FALSE(best.wheel.on_default_index);
  EXPECT_NE(step(answer, request).find("--torch-backend " + best.wheel.tag), std::string::npos);
  Request only = request;
  only.default_index_only = true;
  const Answer there = answer_for("RTX 3060,580", only);
  ASSERT_FALSE(there.usable.empty());
  EXPECT_EQ(there.usable.front().wheel.cuda->part(0), 12u);
}

TEST(Companions, WhatHasNoFileIsBuiltInASecondStep) {
  const Request request = asking({"torch", "flash-attn"});
  const Answer answer = answer_for("RTX 3060,580", request);
  ASSERT_FALSE(answer.usable.empty());
  // Torch is not dragged back for it.
  EXPECT_EQ(answer.usable.front().wheel.torch, Knowledge::builtin().newest_torch().text());
  const std::string line = step(answer, request);
  const size_t torch = line.find("torch=="), built = line.find("--no-build-isolation flash-attn==");
  EXPECT_NE(built, std::string::npos) << line;
  EXPECT_LT(torch, line.find("&& uv pip install setuptools"));
}

TEST(Companions, APrebuiltFileIsNamedWhole) {
  const Request request = asking({"torch==2.9.0", "flash-attn"});
  const Answer answer = answer_for("RTX 3060,580", request);
  ASSERT_FALSE(answer.usable.empty());
  EXPECT_EQ(answer.usable.front().python, "3.12");
  EXPECT_NE(step(answer, request)
                .find("flash_attn-2.8.3%2Bcu12torch2.9cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"),
            std::string::npos)
      << step(answer, request);
}

TEST(Companions, TheirFilesNeedACLibrary) {
  const Answer answer = answer_for("A100,535,glibc=2.17", asking({"torch"}));
  ASSERT_FALSE(answer.usable.empty());
  for (const char* package : {"xformers", "bitsandbytes"}) {
    const Companion* found = companion(answer.usable.front(), package);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->version, "");
    EXPECT_EQ(found->why_not, "glibc") << package;
  }
}

TEST(PythonChoice, AsDoctorTakesIt) {
  EXPECT_EQ(answer_for("RTX 3060,580", asking({"torch"})).usable.front().python, "3.12");
  EXPECT_EQ(answer_for("RTX 3060,580", asking({"torch==1.9.0"})).usable.front().python, "3.9");
  // PyTorch's own index has files for a Python that the default one has none for.
  Request request = asking({"torch==2.14.1"});
  request.python = "3.15";
  const Answer answer = answer_for("RTX 3060,580", request);
  ASSERT_FALSE(answer.usable.empty());
  EXPECT_FALSE(answer.usable.front().wheel.on_default_index);
}

TEST(Packages, ThatMayPinTorchLeaveItOpen) {
  const Request request = asking({"torch", "vllm"});
  const Answer answer = answer_for("RTX 3060,580", request);
  const std::string line = step(answer, request);
  EXPECT_NE(line.find("'torch<="), std::string::npos) << line;
  EXPECT_EQ(line.find("torch=="), std::string::npos) << line;
  EXPECT_EQ(line.find("torchvision"), std::string::npos) << line;
}

// The step for a machine whose environment is known, as doctor writes it.
TEST(Owner, OfTheEnvironmentInstalls) {
  facts::Facts facts;
  facts.envs.resize(1);
  facts::PythonEnv& env = facts.envs[0];
  env.path = "/e";
  env.kind = "venv";
  env.active = true;
  env.python = known<std::string>("3.12.3", SourceKind::file, "t");
  env.interpreter = known<std::string>("/e/bin/python", SourceKind::file, "t");
  env.distributions = known(std::vector<facts::Distribution>(), SourceKind::file, "t");
  const auto line = [&](const std::string& target, const Request& request) {
    Answer answer = answer_for(target, request);
    answer.target.preferred_python = "3.12";
    return report::install_line(answer.usable.front(), answer.target, request, Knowledge::builtin(),
                                &facts);
  };
  env.installer = "pip";
  const std::string newest = Knowledge::builtin().newest_torch().text();
  const std::string pip = line("RTX 3060,580", asking({"torch", "transformers"}));
  EXPECT_EQ(pip, "/e/bin/python -m pip install 'torch<=" + newest + "' transformers");
  env.installer = "uv";
  const Request beside = asking({"torch==2.11.0", "bitsandbytes"});
  const Answer answer = answer_for("RTX 4090,535", beside);
  ASSERT_FALSE(answer.usable.empty());
  const std::string tag = answer.usable.front().wheel.tag;
  EXPECT_EQ(line("RTX 4090,535", beside),
            "uv pip install --python /e/bin/python torch==2.11.0+" + tag + " torchvision==0.26.0+" +
                tag +
                " bitsandbytes==" + companion(answer.usable.front(), "bitsandbytes")->version +
                " --index https://download.pytorch.org/whl/" + tag);
  env.project = "/p";
  EXPECT_EQ(line("RTX 3060,580", asking({"torch==2.11.0"})),
            "uv add --project /p torch==2.11.0 torchvision==0.26.0");
  env.project.clear();
  env.kind = env.installer = "conda";
  EXPECT_EQ(line("RTX 3060,580", asking({"torch==2.11.0"})),
            "/e/bin/python -m pip install torch==2.11.0");
  // Another Python is another environment.
  EXPECT_EQ(line("RTX 3060,580,python=3.11", asking({"torch==2.11.0"})).find("uv venv"), 0u);
}

TEST(Mirror, StepsNameIt) {
  Request request = asking({"torch"});
  request.mirror.pytorch = "https://mirror.example/wheels";
  const Answer answer = answer_for("RTX 4090,535", request);
  const std::string line = step(answer, request), tag = answer.usable.front().wheel.tag;
  EXPECT_NE(line.find("--index https://mirror.example/wheels/" + tag), std::string::npos) << line;
  EXPECT_NE(line.find("+" + tag), std::string::npos) << line;
  EXPECT_EQ(line.find("--torch-backend"), std::string::npos) << line;
}

TEST(Plan, AnotherTorchGivesAClassAnotherName) {
  const auto a = described_target("RTX 5090,580", Knowledge::builtin());
  const auto b = described_target("A800,470", Knowledge::builtin());
  ASSERT_TRUE(a && b);
  Plan plan = plan_classes({*a, *b}, asking({"torch"}), Knowledge::builtin());
  ASSERT_EQ(plan.classes.size(), 2u);
  const Answer other = answer_for("RTX 5090,580", asking({"torch==2.14.0"}));
  replace_choice(plan, 0, other.usable.front());
  EXPECT_EQ(plan.classes[0].name, other.usable.front().wheel.tag);
  EXPECT_EQ(plan.classes[0].choice.wheel.torch, "2.14.0");
  EXPECT_NE(plan.classes[0].name, plan.classes[1].name);
}

}  // namespace
}  // namespace cufit::resolve
