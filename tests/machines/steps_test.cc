// SPDX-License-Identifier: Apache-2.0
// Laws of next steps, over all recorded machines as they are and with other GPUs and drivers: the
// engine, asked again with what a step changes, does not find the same; no step names a wheel that
// is not there; a command is one line that sh can read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/doctor.h"
#include "checks/check.h"
#include "checks/install/after_step.h"
#include "checks/install/fix_plan.h"
#include "facts/facts_json.h"
#include "knowledge/knowledge.h"
#include "report/report.h"
#include "report/step_command.h"
#include "support/places.h"

namespace cufit::steps_test {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, facts::Facts>> machines() {
  std::vector<std::pair<std::string, facts::Facts>> out;
  for (const auto& entry :
       fs::directory_iterator(fs::path(test::source_dir()) / "tests" / "machines")) {
    std::ifstream in(entry.path() / "facts.json", std::ios::binary);
    if (!in) continue;
    std::ostringstream text;
    text << in.rdbuf();
    Result<facts::Facts> facts = facts::facts_from_json(text.str(), entry.path().filename());
    if (facts) out.emplace_back(entry.path().filename(), std::move(*facts));
  }
  return out;
}

// The machine itself, and with other hardware.
const std::vector<std::pair<std::string, facts::Facts>>& with_other_hardware() {
  constexpr std::pair<const char*, const char*> k_hardware[] = {
      {"GTX 1080", "535.183.01"}, {"V100 SXM2 32GB", "580.95.05"}, {"RTX 3090", "470.82.01"},
      {"RTX 4090", "550.54.14"},  {"RTX 5090", "560.35.03"},       {"RTX 5090", "570.124.06"},
      {"H200", "580.95.05"}};
  static std::vector<std::pair<std::string, facts::Facts>> out;
  if (!out.empty()) return out;
  for (auto& [name, facts] : machines()) {
    for (const auto& [gpu, driver] : k_hardware) {
      auto other = checks::assume(facts, {{gpu}, driver}, knowledge::Knowledge::builtin());
      if (other) out.emplace_back(format("{} {} {}", name, gpu, driver), std::move(*other));
    }
    out.emplace_back(name, std::move(facts));
  }
  return out;
}

// "torch==2.11.0+cu126" anywhere in a step: the wheel is in the table.
std::string wheel_that_is_not(const std::string& step) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  for (size_t at = step.find("torch=="); at != std::string::npos;
       at = step.find("torch==", at + 1)) {
    if (at > 0 && (std::isalnum(step[at - 1]) || step[at - 1] == '-')) continue;
    const size_t end = step.find_first_of(" '`,;", at);
    const std::string version = step.substr(at + 7, end == std::string::npos ? end : end - at - 7);
    const size_t plus = version.find('+');
    if (knowledge.find_torch(version.substr(0, plus)) == nullptr) return version;
    if (plus == std::string::npos) continue;
    const auto wheels = knowledge.wheels_of(version.substr(0, plus));
    if (std::none_of(wheels.begin(), wheels.end(), [&](const knowledge::WheelVariant* one) {
          return one->tag == version.substr(plus + 1);
        }))
      return version;
  }
  return {};
}

bool sh_reads(const std::string& command) {
  return std::system(("sh -n -c " + shell_word(command) + " 2>/dev/null").c_str()) == 0;
}

TEST(Steps, AreConfirmedByTheEngine) {
  size_t changes = 0;
  for (const auto& [name, facts] : with_other_hardware()) {
    const checks::Report report = checks::examine(facts, knowledge::Knowledge::builtin());
    for (const checks::Finding& one : report.findings) {
      EXPECT_FALSE(one.step_fails) << name << ": " << one.id << " " << one.subject;
      changes += one.change.has_value();
    }
  }
  EXPECT_GT(changes, 300u);  // the law was asked at all
}

// What `resolve` calls a full fit is none by minor-version compatibility once it is installed: the
// toolkit's updates (CUDA 12.8.1) ask for no newer driver.
TEST(Steps, LeadToNoLimitThatTheTableDoesNotKnow) {
  const knowledge::Knowledge& world = knowledge::Knowledge::builtin();
  size_t judged = 0;
  for (const auto& [name, facts] : with_other_hardware()) {
    for (const checks::Finding& one : checks::examine(facts, world).findings) {
      if (!one.change || one.change->kind != checks::Change::Kind::torch) continue;
      const facts::Facts after = checks::after_step(facts, *one.change, world);
      const checks::Input input = checks::make_input(after, world);
      const knowledge::CudaTag* tag = world.find_cuda_tag(one.change->tag);
      const auto cuda = tag != nullptr ? parse_version(tag->cuda) : std::nullopt;
      if (!cuda || !input.driver_cuda) continue;
      if (*input.driver_cuda < Version{{cuda->part(0), cuda->part(1)}}) continue;
      ++judged;
      for (const checks::Finding& left : checks::examine(after, world).findings)
        EXPECT_NE(left.id, "driver_minor_compat") << name << ": " << one.change->tag;
    }
  }
  EXPECT_GT(judged, 20u);
}

TEST(Steps, NameOnlyWheelsThatAreThere) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  size_t named = 0;
  for (const auto& [name, facts] : with_other_hardware()) {
    const checks::Report report = checks::examine(facts, knowledge);
    for (const checks::Finding& one : report.findings) {
      const std::string step = report::finding_text(one, "next", "en", knowledge);
      EXPECT_EQ(wheel_that_is_not(step), "") << name << ": " << step;
      for (const char* bare : {"pip install torch ", "pip install torch`", "--upgrade torch"})
        EXPECT_EQ(step.find(bare), std::string::npos) << name << ": " << step;
      named += contains(step, " torch==");
    }
  }
  EXPECT_GT(named, 100u);
}

TEST(Steps, CommandsAreOneLineForSh) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  size_t commands = 0;
  for (const auto& [name, facts] : machines()) {
    const checks::Report report = checks::examine(facts, knowledge);
    for (const checks::Finding& one : report.findings) {
      const auto command = report::step_command(report::finding_text(one, "next", "en", knowledge),
                                                report::finding_text(one, "next", "zh", knowledge));
      if (!command) continue;
      ++commands;
      EXPECT_EQ(command->find('\n'), std::string::npos) << name;
      EXPECT_TRUE(sh_reads(*command)) << name << ": " << *command;
    }
  }
  EXPECT_GT(commands, 20u);
}

// After all steps of a machine the verdict is never worse, and better where all could be simulated.
TEST(Steps, OfAWholePlanImproveTheVerdict) {
  size_t better = 0;
  for (const auto& [name, facts] : with_other_hardware()) {
    const checks::FixPlan plan = checks::plan_fix(facts, knowledge::Knowledge::builtin());
    if (!plan.certain || plan.before != checks::LinkState::broken) continue;
    EXPECT_NE(plan.after, checks::LinkState::broken) << name;
    ++better;
  }
  EXPECT_GT(better, 100u);
}

}  // namespace cufit::steps_test
