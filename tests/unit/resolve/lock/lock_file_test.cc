// SPDX-License-Identifier: Apache-2.0
#include "resolve/lock/lock_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "resolve/wheel/policy.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {
namespace lock_file_test {

const knowledge::Knowledge& world() { return knowledge::Knowledge::builtin(); }

Target target(const char* text) { return *described_target(text, world()); }

LockFile sample() {
  LockFile lock;
  lock.created_by = "cufit test";
  lock.requirements = {"torch>=2.4", "a \"quoted\" one"};
  lock.targets = {"RTX 5090,580", "A800,535"};
  const Plan plan =
      plan_classes({target("RTX 5090,580"), target("GTX 1080,535"), target("cpu")}, {}, world());
  for (const Class& one : plan.classes)
    lock.classes.push_back({one.name,
                            "pylock." + one.name + ".toml",
                            std::string(64, 'a'),
                            one.choice.wheel,
                            one.choice.python,
                            40,
                            3000000000u,
                            {"x"},
                            "because\nof this"});
  return lock;
}

TEST(LockFile, RoundTrip) {
  const LockFile lock = sample();
  const std::string text = lock_text(lock);
  const auto read = parse_lock(text, "cufit.lock");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(lock_text(*read), text);
  ASSERT_EQ(read->classes.size(), 3u);
  EXPECT_EQ(read->classes[1].wheel.code.size(), lock.classes[1].wheel.code.size());
  EXPECT_EQ(driver_text(*read->classes[1].wheel.driver_full), "560.28.03");
}

TEST(LockFile, RoutesAsTheTableWould) {
  const LockFile lock = *parse_lock(lock_text(sample()), "cufit.lock");
  const std::pair<const char*, const char*> cases[] = {{"RTX 5090,580", "cu132"},
                                                       {"A800,535", "cu126"},
                                                       {"RTX 4090,535", "cu126"},
                                                       {"GTX 1080,580", "cu126"},
                                                       {"A800,470", ""},
                                                       {"cpu", "cpu"},
                                                       {"GTX 1080 + RTX 5090,580", ""},
                                                       {"RTX 3090,580,python=3.6", "cu132"}};
  for (const auto& [text, name] : cases) {
    const Routing routing = route(lock, target(text), world());
    EXPECT_EQ(routing.chosen == Routing::npos ? "" : lock.classes[routing.chosen].name, name)
        << text;
    EXPECT_EQ(routing.verdicts.size(), 3u);
  }
}

// `run` starts what it routes to: a wheel that needs another package beneath it, or of which nobody
// knows what code it has, is none of these.
TEST(LockFile, RoutesToNothingThatMayNotWork) {
  const std::vector<Wheel> wheels = known_wheels(world(), "linux_x86_64");
  const auto cu128 = std::find_if(wheels.begin(), wheels.end(),
                                  [](const Wheel& one) { return one.tag == "cu128"; });
  ASSERT_NE(cu128, wheels.end());
  LockFile lock;
  lock.classes = {{.name = "cu128", .wheel = *cu128}};
  const auto routed = [&](const char* machine, Fit fit) {
    const Routing routing = route(lock, target(machine), world());
    EXPECT_EQ(routing.verdicts.at(0).fit, fit) << machine;
    return routing.chosen != Routing::npos;
  };
  EXPECT_TRUE(routed("A100,580", Fit::works));
  EXPECT_FALSE(routed("A100,470", Fit::needs_compat));
  EXPECT_FALSE(routed("A100", Fit::unknown));
  lock.classes[0].wheel.code.clear();
  EXPECT_FALSE(routed("A100,580", Fit::unknown));
}

TEST(LockFile, AnyEditedByteIsSeen) {
  const std::string good = lock_text(sample());
  ASSERT_FALSE(parse_lock(good, "cufit.lock")->edited);
  EXPECT_TRUE(parse_lock(good, "cufit.lock")->summed);
  EXPECT_FALSE(parse_lock(good.substr(0, good.find("\n[sum]")), "cufit.lock")->summed);
  for (const auto& [from, to] :
       {std::pair("driver-min = \"5", "driver-min = \"4"), std::pair("\"90\", ", ""),
        std::pair("because", "Because"), std::pair("[sum]", "# mine\n[sum]")}) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), std::string(from).size(), to);
    const auto read = parse_lock(text, "cufit.lock");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_TRUE(read->edited) << from;
  }
  // What stands below the sum is not covered by it.
  EXPECT_TRUE(parse_lock(good + "[other]\nkey = 1\n", "cufit.lock")->edited);
  std::string windows = "\xEF\xBB\xBF";
  for (char c : good) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto checked_out = parse_lock(windows, "cufit.lock");
  ASSERT_TRUE(checked_out) << checked_out.error().text();
  EXPECT_FALSE(checked_out->edited);
  // Before there was a sum.
  EXPECT_FALSE(parse_lock(good.substr(0, good.find("\n[sum]\n")), "cufit.lock")->edited);
}

TEST(LockFile, WrongOnesNameFileAndLine) {
  const std::string good = lock_text(sample());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::pair<std::string, const char*> wrong[] = {
      {"", "`schema` is missing"},
      {changed("cufit.lock/1", "cufit.lock/9"), "cufit.lock/9"},
      {changed("name = \"cu126\"", "name = \"../x\""), "class name"},
      {changed("name = \"cu126\"", "name = \"cu132\""), "a second class"},
      {changed("file = \"pylock.cu126.toml\"", "file = \"../../etc/passwd\""), "in this folder"},
      {changed("torch = \"2.14.1\"", "torch = 2"), "`torch` must be a text"},
      {changed("torch = \"2.15.0\"", "torch = \"\""), "not empty"},
      {changed("cubins = [", "cubins = [\"x\", "), "cubins"},
      {changed("serves = [", "serves = [[], "), "serves"},
      {good + "\n[[class]]\n", "`name` is missing"},
      {good + "\nx = ", "line"}};
  for (const auto& [text, part] : wrong) {
    const auto read = parse_lock(text, "cufit.lock");
    ASSERT_FALSE(read) << part;
    EXPECT_NE(read.error().text().find(part), std::string::npos) << read.error().text();
    EXPECT_NE(read.error().text().find("cufit.lock"), std::string::npos);
  }
}

TEST(Policy, RulesAreObeyedAndNamed) {
  const auto policy = parse_policy(
      "[other]\nx = 1\n[policy]\ntorch = [\">=2.4\", \"!=2.14.1\"]\ntorch_denied = [\"2.14.0\"]\n"
      "cuda = [\"cu126\", \"cpu\"]\npython = [\"<3.13\"]\ndriver_min = \"535.104\"\n"
      "gpus = [\"A800\", \"8.9\"]\ngpus_denied = [\"RTX 4090\"]\nowners = [\"uv\"]\n",
      "cufit.toml");
  ASSERT_TRUE(policy) << policy.error().text();
  Request request;
  request.policy = *policy;
  const Answer answer = resolve(target("A800,535.183"), request, world());
  ASSERT_FALSE(answer.usable.empty());
  EXPECT_EQ(answer.usable.front().wheel.torch + answer.usable.front().wheel.tag, "2.13.0cu126");
  EXPECT_EQ(answer.usable.front().python, "3.12");
  for (const char* refused : {"A800,525.60.13", "RTX 4090,550", "RTX 3090,550"}) {
    const Answer no = resolve(target(refused), request, world());
    EXPECT_TRUE(no.usable.empty()) << refused;
    ASSERT_EQ(no.conflict.size(), 1u) << refused;
    EXPECT_EQ(no.conflict[0].substr(0, 7), "policy ") << refused;
  }
  EXPECT_TRUE(forbids_owner(*policy, "torch", "uv").empty());
  EXPECT_EQ(forbids_owner(*policy, "torch", "conda").size(), 1u);
}

TEST(Policy, SlipsInNamesOfGpusAreTold) {
  const auto policy = parse_policy(
      "[policy]\ngpus = ['A800', '8.0', 'RTX 4090', 'RTX 40900']\ngpus_denied = ['GTX', 'GXT "
      "1080']\n",
      "cufit.toml");
  ASSERT_TRUE(policy) << policy.error().text();
  EXPECT_EQ(unknown_gpus(*policy, world()), (std::vector<std::string>{"RTX 40900", "GXT 1080"}));
}

TEST(Policy, WrongOnesNameFileAndLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"policy = 1", "line 1"},
      {"[policy]\ntorhc = [\">=2\"]", "line 2: `policy.torhc`"},
      {"[policy]\n\ntorch = [\"newest\"]", "`newest` is not a version specifier"},
      {"[policy]\ncuda = \"cu126\"", "must be a list"},
      {"[policy]\ndriver_min = \"new\"", "driver version"},
      {"[policy", "cufit.toml, line 1"}};
  for (const auto& [text, part] : wrong) {
    const auto read = parse_policy(text, "cufit.toml");
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().text().find(part), std::string::npos) << read.error().text();
  }
}

}  // namespace lock_file_test
}  // namespace cufit::resolve
