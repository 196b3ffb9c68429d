// SPDX-License-Identifier: Apache-2.0
#include "report/fix.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::report {
namespace fix_test {

using knowledge::Knowledge;

checks::FixStep step_of(const char* id, const std::string& command, const std::string& subject) {
  checks::FixStep step;
  step.finding.id = id;
  step.finding.severity = checks::Severity::error;
  step.finding.subject = subject;
  step.finding.args = {{"command", command}, {"other", "/venv"}};
  step.simulated = true;
  return step;
}

std::vector<std::string> commands_of(const checks::FixPlan& plan) {
  std::vector<std::string> out;
  const std::string script = fix_script({plan, Knowledge::builtin()}, {});
  for (const std::string_view line : split_lines(script))
    if (!line.empty() && line[0] != '#' && line != "set -e") out.emplace_back(line);
  return out;
}

// A path with the end of a line in it stays in its comment.
TEST(FixScript, NothingOfACommentBecomesACommand) {
  checks::FixPlan plan;
  plan.steps = {step_of("torch_family_mismatch", "echo a", "env /v\ntouch /tmp/PWNED\n#")};
  EXPECT_EQ(commands_of(plan), (std::vector<std::string>{"echo a"}));
}

// What changes its own shell does nothing in a script, and `source` is no command of sh.
TEST(FixScript, LeavesTheReadersShellToTheReader) {
  checks::FixPlan plan;
  plan.steps = {step_of("wrong_python_env", "", "machine"),
                step_of("pythonpath_hides_torch", "unset PYTHONPATH", "env /v")};
  EXPECT_EQ(commands_of(plan), std::vector<std::string>());
  EXPECT_TRUE(contains(fix_script({plan, Knowledge::builtin()}, {}), "unset PYTHONPATH"));
}

TEST(FixScript, TellsNoVerdictOfWhatIsNotSimulated) {
  checks::FixPlan plan;
  plan.steps = {step_of("torch_family_mismatch", "echo a", "env /v")};
  plan.before = checks::LinkState::broken;
  plan.after = checks::LinkState::ok;
  plan.certain = true;
  EXPECT_TRUE(contains(fix_script({plan, Knowledge::builtin()}, {}), "After these steps: Yes."));
  plan.certain = false;
  EXPECT_FALSE(contains(fix_script({plan, Knowledge::builtin()}, {}), "After these steps"));
  EXPECT_TRUE(contains(fix_json({plan, Knowledge::builtin()}), "\"verdict_after\": null"));
}

}  // namespace fix_test
}  // namespace cufit::report
