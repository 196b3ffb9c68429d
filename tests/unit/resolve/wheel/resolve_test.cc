// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/resolve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "facts/facts_json.h"
#include "resolve/wheel/conflict.h"
#include "resolve/wheel/policy.h"
#include "support/places.h"

namespace cufit::resolve {
namespace resolve_test {

using knowledge::Knowledge;

const Knowledge& world() { return Knowledge::builtin(); }

Target target(const char* text) {
  auto made = described_target(text, world());
  if (!made) ADD_FAILURE() << text << ": " << made.error().text();
  return made ? *made : Target();
}

Request request(const std::vector<const char*>& requirements) {
  Request out;
  for (const char* text : requirements) {
    auto one = formats::parse_requirement(text);
    EXPECT_TRUE(one) << text;
    out.requirements.push_back(*one);
  }
  return out;
}

std::string best(const Answer& answer) {
  if (answer.usable.empty()) return "";
  const Wheel& wheel = answer.usable.front().wheel;
  return wheel.torch + " " + wheel.tag;
}

TEST(Target, Descriptions) {
  const Target two =
      target("2x A800 + GTX 1080,driver=580.65.06,glibc=2.31,python=3.11,arch=aarch64");
  ASSERT_EQ(two.gpus.size(), 2u);
  EXPECT_EQ(two.gpus[0].cc.text(), "6.1");  // lowest first
  EXPECT_EQ(two.gpus[1].count, 2u);
  EXPECT_EQ(driver_text(*two.driver), "580.65.06");
  EXPECT_EQ(two.python, "3.11");
  EXPECT_EQ(two.platform, "linux_aarch64");
  EXPECT_EQ(target("8.9,535").gpus[0].cc.text(), "8.9");
  EXPECT_EQ(target("RTX 4090").driver_state, Target::Driver::not_told);
  EXPECT_EQ(target("cpu").driver_state, Target::Driver::absent);
}

TEST(Target, CountsStandBeforeOrBehind) {
  for (const char* text : {"2x A100", "2 x A100", "A100 x2", "A100 x 2", "A100 X2", "2*A100",
                           "A100*2", "A100 * 2", "2xA100"})
    EXPECT_EQ(target(text).gpus[0].count, 2u) << text;
  EXPECT_EQ(target("RTX 4090 x2 + A100,580").gpus[1].count, 2u);
  EXPECT_EQ(target("4090x2,580").gpus[0].count, 2u);
  EXPECT_EQ(target("2x4090,580").gpus[0].name, "NVIDIA GeForce RTX 4090");
  EXPECT_NE(described_target("MX999", world()).error().text().find("`MX999`"), std::string::npos);
  for (const char* wrong : {"A100 x0", "A100 x65", "A100 x99999999999999999999"})
    EXPECT_NE(described_target(wrong, world()).error().text().find("64 GPUs"), std::string::npos);
}

TEST(Target, WordsOfADescription) {
  EXPECT_EQ(target("RTX 4090,580,python=3.13t").python, "3.13t");
  EXPECT_FALSE(described_target("RTX 4090,580,python=3.13tx", world()));
  EXPECT_EQ(driver_text(*target("RTX 4090, driver 580.65.06").driver), "580.65.06");
  const std::string two = described_target("A100 + RTX 4091,535", world()).error().text();
  EXPECT_NE(two.find("`RTX 4091`"), std::string::npos) << two;
}

TEST(Target, WrongDescriptionsNameTheWord) {
  const std::pair<const char*, const char*> wrong[] = {
      {"RTX 4091,535", "RTX 4090"},    {"", "empty"},
      {"RTX 4090,,535", "empty word"}, {"RTX 4090,535,550", "second"},
      {"RTX 4090,cuda=12", "glibc="},  {"0x A100", "64"},
      {"RTX 4090,python=3", "python"}, {"A100 + ,535", "missing"}};
  for (const auto& [text, part] : wrong) {
    const auto made = described_target(text, world());
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, Code::usage) << text;
    EXPECT_NE(made.error().text().find(part), std::string::npos) << made.error().text();
  }
}

TEST(Resolve, RequirementsRuleOut) {
  EXPECT_EQ(best(resolve(target("RTX 4090,580"), request({"torch<2.9"}), world())), "2.8.0 cu128");
  EXPECT_EQ(best(resolve(target("RTX 4090,580"), request({"torch==2.7.1+cu118"}), world())),
            "2.7.1 cu118");
  // Where flash-attn has no file it is built: torch does not go back for it.
  EXPECT_EQ(best(resolve(target("RTX 4090,580"), request({"flash-attn"}), world())), "2.15.0 cu132");
  // xformers left Volta after torch 2.7.0.
  EXPECT_EQ(best(resolve(target("V100,580"), request({"xformers"}), world())), "2.7.0 cu126");
  // A CPU build for a machine with a GPU only where it is asked for by name.
  EXPECT_EQ(best(resolve(target("RTX 4090,580"), request({"torch==2.8.0+cpu"}), world())),
            "2.8.0 cpu");
}

TEST(Resolve, MarkersAreAskedOfTheChoice) {
  const Request by_python =
      request({"torch==2.4.0; python_version < '3.12'", "torch==2.8.0; python_version >= '3.12'"});
  const Answer any = resolve(target("RTX 4090,550"), by_python, world());
  EXPECT_EQ(best(any), "2.8.0 cu128");
  EXPECT_EQ(any.usable.front().python, "3.12");
  Request old = by_python;
  old.python = "3.11";
  EXPECT_EQ(best(resolve(target("RTX 4090,550"), old, world())), "2.4.0 cu121");
  const Request by_machine = request(
      {"torch==2.2.2; sys_platform == 'darwin'", "torch<2.14; platform_machine == 'aarch64'"});
  EXPECT_EQ(best(resolve(target("RTX 4090,580.65.06"), by_machine, world())), "2.15.0 cu132");
  EXPECT_EQ(best(resolve(target("GB10,580.65.06,arch=aarch64"), by_machine, world())),
            "2.13.0 cu130");
  // A demand for the processor that is not about this Python leaves the GPU its wheel.
  const Request cpu = request({"torch==2.8.0+cpu; python_version < '3.9'"});
  EXPECT_EQ(best(resolve(target("RTX 4090,580.65.06"), cpu, world())), "2.15.0 cu132");
}

TEST(Policy, VariantsThatNameNoWheelAreRefused) {
  for (const char* wrong : {"12.6", "cu12.6", "CU126", "cu", "CUDA 12.6", ""}) {
    for (const char* key : {"cuda", "cuda_denied"}) {
      const auto made =
          parse_policy("[policy]\n" + std::string(key) + " = [\"" + wrong + "\"]\n", "cufit.toml");
      EXPECT_FALSE(made) << key << " " << wrong;
    }
  }
  EXPECT_TRUE(parse_policy("[policy]\ncuda = [\"cu126\", \"cpu\", \"cu140\"]\n", "cufit.toml"));
}

TEST(Policy, VersionsAreAlternativesSpecifiersAllHold) {
  Policy policy;
  policy.torch = {"2.8.0", "==2.9.*", "!=2.9.0"};
  Wheel wheel;
  const std::pair<const char*, bool> cases[] = {
      {"2.8.0", true}, {"2.9.1", true}, {"2.9.0", false}, {"2.10.0", false}};
  for (const auto& [torch, allowed] : cases) {
    wheel.torch = torch;
    EXPECT_EQ(forbids(policy, wheel).empty(), allowed) << torch;
  }
  EXPECT_EQ(forbids(policy, wheel)[0].args.at("entry"), "2.8.0, ==2.9.*");
  policy.python = {"3.11", "3.12", ">=3.11.4"};
  const std::pair<const char*, bool> pythons[] = {
      {"3.11", true},   {"3.12", true},   {"3.13", false}, {"3.11.2", false},
      {"3.11.9", true}, {"3.12.1", true}, {"3.12t", true}, {"3.10.14", false}};
  for (const auto& [python, allowed] : pythons)
    EXPECT_EQ(forbids_python(policy, python).empty(), allowed) << python;
}

TEST(Resolve, PythonIsNeitherTooNewNorMissing) {
  const Answer answer = resolve(target("RTX 4090,580"), {}, world());
  // The newest is new to most packages.
  EXPECT_EQ(answer.usable.front().python, "3.12");
  Request old;
  old.python = "3.9";
  const Answer with_39 = resolve(target("RTX 4090,580"), old, world());
  EXPECT_EQ(best(with_39), "2.8.0 cu128");
  EXPECT_EQ(with_39.usable.front().python, "3.9");
}

PythonDemand project(const char* text) { return {"p.toml", text, *formats::parse_clauses(text)}; }

TEST(Resolve, PythonMeetsWhatTheProjectsRequire) {
  Request own;
  own.pythons = {project(">=3.9.4,<3.13")};
  EXPECT_EQ(resolve(target("RTX 4090,580"), own, world()).usable.front().python, "3.12");
  own.pythons.push_back(project("<3.10"));  // 3.9.4 and later: torch 2.8.0 was the last with it
  const Answer old = resolve(target("RTX 4090,580"), own, world());
  EXPECT_EQ(best(old), "2.8.0 cu128");
  EXPECT_EQ(old.usable.front().python, "3.9");
  const auto conflict = [](const Request& request) {
    std::string out;
    for (const std::string& one : resolve(target("RTX 4090,580"), request, world()).conflict)
      out += one + "|";
    return out;
  };
  own.pythons = {project(">=3.20")};
  EXPECT_EQ(conflict(own), "requires-python >=3.20|");
  own.pythons = {project(">=3.12")};
  own.python = "3.11";
  EXPECT_EQ(conflict(own), "requires-python >=3.12|Python 3.11|");
  own.python.clear();
  own.policy.python = {"<3.12"};
  EXPECT_EQ(conflict(own), "policy python|requires-python >=3.12|");
  own.policy.python = {"<3.0"};
  EXPECT_EQ(conflict(own), "policy python|");
}

TEST(Resolve, DriverNotToldIsACondition) {
  const Answer answer = resolve(target("RTX 4090"), {}, world());
  ASSERT_FALSE(answer.usable.empty());
  EXPECT_EQ(answer.usable.front().verdict.fit, Fit::unknown);
  EXPECT_EQ(answer.usable.front().verdict.reasons.front().id, "driver_not_told");
}

TEST(Resolve, CudaCompatComesLastAndOnlyWhereItMay) {
  const Answer a800 = resolve(target("A800,470"), {}, world());
  const auto compat = std::find_if(a800.usable.begin(), a800.usable.end(), [](const Choice& one) {
    return one.verdict.fit == Fit::needs_compat;
  });
  ASSERT_NE(compat, a800.usable.end());
  EXPECT_TRUE(std::all_of(compat, a800.usable.end(),
                          [](const Choice& one) { return one.verdict.fit == Fit::needs_compat; }));
  for (const Choice& one : resolve(target("RTX 3090,470"), {}, world()).usable)
    EXPECT_NE(one.verdict.fit, Fit::needs_compat) << one.wheel.torch;
}

// A package of cuda-compat lists its branches per release of CUDA, not per major: there is none for
// 12.6, and that of 13.2 does not go onto 575.
TEST(Resolve, CudaCompatIsOfOneReleaseOfCuda) {
  const struct {
    const char* machine;
    const char* tag;
    Fit fit;
  } rows[] = {{"A100,470", "cu121", Fit::needs_compat}, {"A100,470", "cu124", Fit::needs_compat},
              {"A100,470", "cu126", Fit::no},           {"A100,470", "cu128", Fit::needs_compat},
              {"A100,575", "cu130", Fit::needs_compat}, {"A100,575", "cu132", Fit::no},
              {"A100,550", "cu130", Fit::needs_compat}, {"A100,550", "cu132", Fit::no}};
  const std::vector<Wheel> wheels = known_wheels(world(), "linux_x86_64");
  for (const auto& row : rows) {
    const auto wheel = std::find_if(wheels.begin(), wheels.end(),
                                    [&](const Wheel& one) { return one.tag == row.tag; });
    ASSERT_NE(wheel, wheels.end()) << row.tag;
    const Verdict verdict = judge(*wheel, target(row.machine), world());
    EXPECT_EQ(to_string(verdict.fit), std::string(to_string(row.fit)))
        << row.machine << " " << wheel->torch << " " << row.tag;
    ASSERT_FALSE(verdict.reasons.empty());
    EXPECT_EQ(verdict.reasons.front().id, row.fit == Fit::no ? "driver_too_old" : "driver_compat");
  }
}

Wheel first_of(const char* tag) {
  const std::vector<Wheel> wheels = known_wheels(world(), "linux_x86_64");
  const auto wheel =
      std::find_if(wheels.begin(), wheels.end(), [&](const Wheel& one) { return one.tag == tag; });
  EXPECT_NE(wheel, wheels.end()) << tag;
  return wheel == wheels.end() ? Wheel{} : *wheel;
}

// The driver that cuda-compat stands for has to drive the GPU: 595 has dropped Volta, 580 has not.
TEST(Resolve, CudaCompatDoesNotBringADroppedGpuBack) {
  for (const auto& [tag, fit] :
       {std::pair{"cu130", Fit::needs_compat}, std::pair{"cu132", Fit::no}}) {
    Wheel wheel = first_of(tag);
    wheel.code.push_back({formats::CodeKind::cubin, "70", "", 1});
    EXPECT_EQ(to_string(judge(wheel, target("V100,535"), world()).fit), std::string(to_string(fit)))
        << tag;
    EXPECT_EQ(judge(wheel, target("A100,535"), world()).fit, Fit::needs_compat) << tag;
  }
}

TEST(Resolve, TheTableSaysWhichCapabilitiesHaveTheirOwnCode) {
  static constexpr knowledge::OwnCodeRow own[] = {{"8.6"}};
  Knowledge changed = world();
  changed.own_code = own;
  const Wheel wheel = first_of("cu126");
  const auto reason = [&](const char* machine, const Knowledge& knowledge) {
    const Verdict verdict = judge(wheel, target(machine), knowledge);
    return verdict.reasons.empty() ? to_string(verdict.fit) : verdict.reasons.front().id;
  };
  EXPECT_EQ(reason("8.7,580,arch=x86_64", world()), "jetson");
  EXPECT_EQ(reason("8.6,580", world()), "works");
  EXPECT_EQ(reason("8.6,580", changed), "jetson");
  EXPECT_EQ(reason("8.7,580,arch=x86_64", changed), "works");
}

TEST(Resolve, InstalledFilesGoBeforeTheTable) {
  Request with_file;
  // The table says that 2.15.0+cu132 has no code for Volta; this file has.
  with_file.installed = {{"2.15.0",
                          "cu132",
                          "/env/libtorch_cuda.so",
                          {{formats::CodeKind::cubin, "70", "", 900, true},
                           {formats::CodeKind::cubin, "80", "", 900, true}}}};
  const Answer answer = resolve(target("V100,580"), with_file, world());
  EXPECT_EQ(best(answer), "2.15.0 cu132");
  ASSERT_EQ(answer.disagreements.size(), 1u);
  const Disagreement& one = answer.disagreements[0];
  EXPECT_EQ(one.file, "7.0 8.0");
  EXPECT_NE(std::find(one.differ.begin(), one.differ.end(), "7.0"), one.differ.end());
  EXPECT_NE(std::find(one.differ.begin(), one.differ.end(), "12.0"), one.differ.end());
  EXPECT_EQ(answer.usable.front().wheel.source, "/env/libtorch_cuda.so");
}

formats::IndexPage page(const std::vector<const char*>& names) {
  formats::IndexPage out;
  for (const char* name : names) {
    formats::IndexFile file;
    file.filename = name;
    out.files.push_back(file);
  }
  return out;
}

TEST(Resolve, OnlyWhatTheIndexHas) {
  Request own;
  own.index = page({"torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl",
                    "torch-2.9.1-cp313-cp313t-manylinux_2_28_x86_64.whl",
                    "torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl",
                    "torch-2.8.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl",
                    "torch-2.99.0-cp312-cp312-manylinux_2_28_x86_64.whl",
                    "torch-2.15.0rc1-cp312-cp312-manylinux_2_28_x86_64.whl", "torch-2.9.1.tar.gz"});
  const Answer answer = resolve(target("RTX 4090,580"), own, world());
  ASSERT_EQ(answer.usable.size(), 2u);
  EXPECT_EQ(best(answer), "2.9.1 cu128");  // the default variant of that release
  EXPECT_EQ(answer.usable[0].python, "3.12");
  EXPECT_EQ(answer.usable[1].wheel.tag, "cu126");
  EXPECT_EQ(answer.usable[1].python, "3.11");
  // A release that the table does not know is shown, and nothing is said of its code.
  const auto unknown = std::find_if(answer.rejected.begin(), answer.rejected.end(),
                                    [](const Choice& one) { return one.wheel.torch == "2.99.0"; });
  ASSERT_NE(unknown, answer.rejected.end());
  EXPECT_EQ(unknown->verdict.fit, Fit::unknown);
  EXPECT_EQ(unknown->verdict.reasons.front().id, "code_unknown");
}

// A wheel that comes from elsewhere stays a choice beside what the index has.
TEST(Resolve, WhatComesFromElsewhereStaysBesideTheIndex) {
  Request own;
  own.index = page({"torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl"});
  EXPECT_EQ(best(resolve(target("GTX 1080,580"), own, world())), "");
  Wheel beside;
  beside.torch = "2.14.1";
  beside.tag = "cu126";
  own.beside_index = {beside};
  const Answer answer = resolve(target("GTX 1080,580"), own, world());
  EXPECT_EQ(best(answer), "2.14.1 cu126");
  EXPECT_EQ(answer.usable.size(), 1u);
}

// The last release for an old card is the last for its group: the other cards of the machine go on.
TEST(Resolve, EachGroupHasItsOwnLastTorch) {
  const Answer answer = resolve(target("GTX 1080 + V100 + RTX 5090,580"), {}, world());
  EXPECT_EQ(answer.last_for_gpus.torch, "");
  ASSERT_EQ(answer.groups.size(), 2u);
  for (const Answer& group : answer.groups) {
    const bool old = group.target.gpus.front().cc < *parse_compute_capability("7.5");
    const Answer alone = resolve(group.target, {}, world());
    EXPECT_EQ(group.last_for_gpus.torch, alone.last_for_gpus.torch);
    EXPECT_EQ(group.last_for_gpus.released, alone.last_for_gpus.released);
    EXPECT_EQ(group.last_for_gpus.torch.empty(), !old) << group.target.label;
  }
}

// Whoever takes one demand of a conflict back gets an answer, and fewer demands never conflict.
TEST(Resolve, ConflictIsTheSmallest) {
  const Answer answer =
      resolve(target("RTX 3090,520,glibc=2.17"), request({"torch>=2.8", "xformers"}), world());
  EXPECT_TRUE(answer.usable.empty());
  EXPECT_EQ(answer.conflict.size(), 2u);
  const Answer pair = resolve(target("RTX 3090,520"), request({"torch>=2.8"}), world());
  EXPECT_EQ(pair.conflict, (std::vector<std::string>{"driver 520", "torch>=2.8"}));
  EXPECT_FALSE(resolve(target("RTX 3090,520"), {}, world()).usable.empty());
  EXPECT_FALSE(resolve(target("RTX 3090,580"), request({"torch>=2.8"}), world()).usable.empty());
}

// flash-attn has releases, and the card has wheels: only together they have none.
TEST(Resolve, ConflictOfTwoThatWouldDoAlone) {
  const Answer answer = resolve(target("RTX 2080 Ti,580"), request({"flash-attn"}), world());
  EXPECT_EQ(answer.conflict,
            (std::vector<std::string>{"flash-attn", "NVIDIA GeForce RTX 2080 Ti (7.5)"}));
}

// What rules out a wheel that falls anyway counts, too: no GPU has a flash-attn 9.
TEST(Resolve, ConflictKnowsThePackagesOfWheelsThatFall) {
  const Answer answer = resolve(target("RTX 4090,580"), request({"flash-attn<1"}), world());
  EXPECT_EQ(answer.conflict, std::vector<std::string>{"flash-attn<1"});
}

TEST(Resolve, OldGpuHasALastDriver) {
  const Answer answer = resolve(target("GTX 1080"), {}, world());
  ASSERT_FALSE(answer.usable.empty());
  const Reason& reason = answer.usable.front().verdict.reasons.front();
  EXPECT_EQ(reason.id, "driver_not_told_until");
  EXPECT_EQ(reason.args.at("last"), "580");
}

// A libcuda of cuda-compat that GeForce refuses says CUDA 13.0; the driver below is of CUDA 12.2.
TEST(Target, RefusedCompatLibraryDoesNotCount) {
  std::ifstream file(cufit::test::source_dir() + "/tests/machines/rtx4090-compat-804/facts.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto facts = facts::facts_from_json(text.str(), "facts.json");
  ASSERT_TRUE(facts);
  const Target machine = target_of(*facts, world(), "x");
  EXPECT_EQ(machine.driver_cuda->text(), "12.2");
  EXPECT_EQ(resolve(machine, {}, world()).usable.front().verdict.fit, Fit::works_minor);
}

TEST(Target, BoardsBesideAnArmProcessor) {
  EXPECT_EQ(target("GB10,580").platform, "linux_aarch64");
  EXPECT_EQ(target("GH200,550,arch=x86_64").platform, "linux_x86_64");
}

TEST(Resolve, MixedMachineInGroups) {
  const Answer answer = resolve(target("GTX 1080 + RTX 5090 + RTX 3090,580"), {}, world());
  EXPECT_TRUE(answer.usable.empty());
  ASSERT_EQ(answer.groups.size(), 2u);
  size_t gpus = 0;
  for (const Answer& group : answer.groups) {
    EXPECT_FALSE(group.usable.empty());
    gpus += group.target.gpus.size();
  }
  EXPECT_EQ(gpus, 3u);
}

TEST(Resolve, ManyKindsInGroupsToo) {
  const Answer answer = resolve(
      target("GTX 1080 + GTX 1080 Ti + GTX 1070 + Tesla P40 + V100 + T4 + RTX 2080 Ti + A100 "
             "+ RTX 3090 + A10 + RTX 4090 + H100 + RTX 5090,580"),
      {}, world());
  EXPECT_TRUE(served(answer));
  size_t gpus = 0;
  for (const Answer& group : answer.groups) gpus += group.target.gpus.size();
  EXPECT_EQ(gpus, 13u);
  ASSERT_EQ(answer.groups.size(), 2u);
  EXPECT_EQ(answer.groups[0].target.gpus.size(), 12u);
  EXPECT_EQ(answer.groups[1].target.gpus[0].name, "NVIDIA GeForce RTX 5090");
}

TEST(Plan, FewestClasses) {
  const std::vector<Target> targets = {target("RTX 4090,535"), target("A800,535"),
                                       target("GTX 1080,580"), target("RTX 5090,580"),
                                       target("cpu")};
  const Plan plan = plan_classes(targets, {}, world());
  ASSERT_EQ(plan.classes.size(), 3u);
  EXPECT_EQ(plan.classes[0].name, "cu132");
  EXPECT_EQ(plan.classes[1].name, "cu126");
  EXPECT_EQ(plan.classes[2].name, "cpu");
  EXPECT_EQ(plan.classes[1].targets, (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(plan.failed.empty());
}

TEST(Plan, OneClassWhereOneServesAll) {
  const Plan plan =
      plan_classes({target("A800,470"), target("RTX 3090,550")}, request({"torch<2.8"}), world());
  ASSERT_EQ(plan.classes.size(), 1u);
  EXPECT_EQ(plan.classes[0].choice.wheel.tag, "cu118");
}

TEST(Plan, MixedMachinesAreSplitAndHopelessOnesNamed) {
  const Plan plan =
      plan_classes({target("GTX 1080 + RTX 5090,580"), target("RTX 5090,535")}, {}, world());
  EXPECT_EQ(plan.classes.size(), 2u);
  EXPECT_EQ(plan.targets.size(), 2u);
  ASSERT_EQ(plan.failed.size(), 1u);
  EXPECT_EQ(plan.failed[0].target.label, "RTX 5090,535");
}

TEST(Plan, SharedTagsGetDifferentNames) {
  // Python 3.9 ended with 2.8, 3.14 came with 2.9; both want cu126 on Pascal.
  const Plan plan = plan_classes(
      {target("GTX 1080,580,python=3.9"), target("GTX 1080,580,python=3.14")}, {}, world());
  ASSERT_EQ(plan.classes.size(), 2u);
  EXPECT_EQ(plan.classes[0].name, "cu126-torch2141");
  EXPECT_EQ(plan.classes[1].name, "cu126-torch280");
}

}  // namespace resolve_test
}  // namespace cufit::resolve
