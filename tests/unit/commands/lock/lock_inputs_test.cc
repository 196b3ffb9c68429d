// SPDX-License-Identifier: Apache-2.0
#include "commands/lock/lock_inputs.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/fake_root.h"

namespace cufit::commands {
namespace lock_inputs_test {

std::string names(const LockInputs& inputs) {
  std::string out;
  for (const formats::Requirement& one : inputs.requirements) out += one.text + "|";
  return out;
}

TEST(LockInputs, FollowWhatRequirementsFilesName) {
  test::FakeRoot root;
  root.file("/r.txt",
            "-r more/inner.txt\n--index-url https://index.example\nnumpy # why\n"
            "colorama; sys_platform == 'win32'\n-c limits.txt\n");
  root.file("/more/inner.txt", "torch>=2.4\n-r ../r.txt\n");
  root.file("/limits.txt", "torch<2.8\n");
  const auto inputs =
      read_lock_inputs(host::RealHost(), {root.at("/r.txt")}, {}, {"scipy>1"}, "3.11");
  ASSERT_TRUE(inputs) << inputs.error().text();
  EXPECT_EQ(names(*inputs), "numpy|torch>=2.4|torch<2.8|scipy>1|");
  // Constraints are no requirement of the project; the markers' own are its.
  EXPECT_EQ(join(inputs->texts, "|"), "numpy|colorama; sys_platform == 'win32'|torch>=2.4|scipy>1");
}

TEST(LockInputs, ReadAProject) {
  test::FakeRoot root;
  root.file("/pyproject.toml",
            "[project]\nname = \"x\"\ndependencies = [\"torch>=2.4\"]\n"
            "[project.optional-dependencies]\ntrain = [\"xformers\"]\n");
  const std::string file = root.at("/pyproject.toml");
  EXPECT_EQ(names(*read_lock_inputs(host::RealHost(), {file}, {"train"}, {}, "")),
            "torch>=2.4|xformers|");
  const auto absent = read_lock_inputs(host::RealHost(), {file}, {"serve"}, {}, "");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::usage);
  root.file("/pyproject.toml", "[project]\ndependencies = [3]\n");
  EXPECT_EQ(read_lock_inputs(host::RealHost(), {file}, {}, {}, "").error().code, Code::malformed);
  EXPECT_EQ(read_lock_inputs(host::RealHost(), {root.at("/absent.txt")}, {}, {}, "").error().code,
            Code::usage);
  EXPECT_EQ(read_lock_inputs(host::RealHost(), {}, {}, {"=="}, "").error().code, Code::usage);
}

}  // namespace lock_inputs_test
}  // namespace cufit::commands
