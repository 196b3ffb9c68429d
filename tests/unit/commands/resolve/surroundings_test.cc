// SPDX-License-Identifier: Apache-2.0
// Which machine a command looks at, and where the files lie that somebody typed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/format.h"
#include "commands/command.h"
#include "support/fake_root.h"

namespace cufit::commands {
namespace surroundings_test {

struct Said {
  int code = 0;
  std::string out, err;
};

Said cufit(const host::Host& files, const host::Host& machine, std::vector<const char*> words) {
  words.insert(words.begin(), "cufit");
  Said said;
  const Streams streams = {[&](std::string_view text) {
                             said.out += text;
                             return true;
                           },
                           [&](std::string_view text) { said.err += text; }};
  said.code = run(Surroundings{files, machine, knowledge::Knowledge::builtin(),
                               [] { return std::time_t{0}; }, streams},
                  static_cast<int>(words.size()), words.data());
  return said;
}

TEST(Surroundings, HereIsTheMachine) {
  test::FakeRoot root;
  root.file("/sys/module/nvidia/version", "535.183.01\n");
  const Said said = cufit(test::FakeRoot().host(), root.host(), {"resolve", "--json"});
  EXPECT_TRUE(contains(said.out, "535.183.01")) << said.out << said.err;
}

TEST(Surroundings, WhatIsTypedLiesInTheFiles) {
  test::FakeRoot files, machine;
  const char* facts = CUFIT_SOURCE_DIR "/tests/machines/h200-torch211-cu130/facts.json";
  const Said real = cufit(host::RealHost(), machine.host(), {"diff", facts, facts, "--json"});
  EXPECT_EQ(real.code, k_ok) << real.err;
  const Said absent = cufit(files.host(), host::RealHost(), {"diff", facts, facts});
  EXPECT_EQ(absent.code, k_failed);
  EXPECT_TRUE(contains(absent.err, facts)) << absent.err;
}

TEST(Surroundings, VariablesAreThoseOfTheFiles) {
  test::FakeRoot root;
  const host::RealHost files = root.host({{"CUFIT_LOCK", "/nowhere/cufit.lock"}});
  const Said said = cufit(files, host::RealHost(), {"export", "--to", "uv"});
  EXPECT_EQ(said.code, k_failed);
  EXPECT_TRUE(contains(said.err, "/nowhere/cufit.lock")) << said.err;
}

}  // namespace surroundings_test
}  // namespace cufit::commands
