// SPDX-License-Identifier: Apache-2.0
// Programs that run side by side as parts of cufit's own work.
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/format.h"
#include "host/process/child_process.h"

namespace cufit::host {
namespace children_test {

ChildOptions shell(const std::string& text) {
  ChildOptions out;
  out.command = {"/bin/sh", "-c", text};
  return out;
}

// Each waits for what the other makes.
TEST(Children, RunAtOnce) {
  char folder[] = "/tmp/cufit-children-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const auto meets = [&](int own, int other) {
    ChildOptions out = shell(format("touch {}/{}; ", folder, own) +
                             format("while [ ! -e {}/{} ]; do sleep 0.02; done; ", folder, other) +
                             format("echo of {}; exit {}", own, own));
    out.seconds = 60;
    out.leave_none = true;
    return out;
  };
  Interrupts interrupts;
  const ChildOptions both[] = {meets(3, 4), meets(4, 3)};
  const Result<std::vector<ChildOutcome>> got = run_children(both, interrupts);
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_EQ(got->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*got)[i].code, static_cast<int>(3 + i));
    EXPECT_EQ((*got)[i].out, format("of {}\n", 3 + i));
    EXPECT_FALSE((*got)[i].timed_out);
    EXPECT_GT((*got)[i].seconds, 0);
    EXPECT_GT((*got)[i].peak_bytes, uint64_t{100} << 10);
  }
  for (const char* name : {"/3", "/4"}) unlink((folder + std::string(name)).c_str());
  rmdir(folder);
}

TEST(Children, OneThatTakesTooLongEndsAlone) {
  ChildOptions slow = shell("sleep 60");
  slow.seconds = 0.3;
  Interrupts interrupts;
  const ChildOptions both[] = {slow, shell("sleep 0.6; exit 7")};
  const Result<std::vector<ChildOutcome>> got = run_children(both, interrupts);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_TRUE((*got)[0].timed_out);
  EXPECT_EQ((*got)[0].code, 128 + SIGKILL);
  EXPECT_FALSE((*got)[1].timed_out);
  EXPECT_EQ((*got)[1].code, 7);
}

TEST(Children, OneThatIsNotThereFailsAll) {
  ChildOptions none = shell("");
  none.command = {"/no/such/program"};
  Interrupts interrupts;
  const ChildOptions both[] = {shell("exit 0"), none};
  const Result<std::vector<ChildOutcome>> got = run_children(both, interrupts);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::not_found);
}

}  // namespace children_test
}  // namespace cufit::host
