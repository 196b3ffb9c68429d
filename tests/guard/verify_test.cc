// SPDX-License-Identifier: Apache-2.0
// `cufit quota verify` on described cards: what holds, what does not, and what it says that it did not try.
#include <csignal>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "guarded.h"
#include "support/places.h"

namespace cufit::test {
namespace {

using Json = nlohmann::json;

const std::string k_start = "init\ncontext 0\n";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class GuardVerify : public Guarded {
 protected:
  pid_t holder(uint64_t mib) {
    const uint64_t wanted = used_mib() + 300 + mib;
    pid_t child = start(k_start + "alloc a " + std::to_string(mib) + "M\nsleep 60");
    for (int i = 0; i < 2000 && used_mib() < wanted; ++i) usleep(5000);
    EXPECT_EQ(used_mib(), wanted);
    return child;
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  Json verify(const std::string& arguments, int* code = nullptr) {
    const Ran ran = cufit("\"$CUFIT\" quota verify --json " + arguments);
    if (code) *code = ran.code();
    return Json::parse(ran.out, nullptr, false);
  }
  // By GPU: how many trials have that proof.
  static size_t count(const Json& said, int gpu, const std::string& proof) {
    size_t out = 0;
    for (const Json& trial : said["trials"]) out += trial["gpu"] == gpu && trial["proof"] == proof;
    return out;
  }
};

// A real CUDA runtime, where the loader finds one, sees that this driver is none of NVIDIA's (103) and asks it for nothing.
TEST_F(GuardVerify, VerifyProvesTheLimit) {
  const Ran ran = cufit("\"$CUFIT\" quota verify --json");
  const Json said = Json::parse(ran.out, nullptr, false);
  size_t held = 0;
  bool runtime = false;
  for (const Json& trial : said["trials"]) {
    held += trial["proof"] == "holds";
    if (trial["proof"] == "holds" || trial["proof"] == "missing") continue;
    EXPECT_EQ(trial["below_result"], 103) << trial.dump();
    runtime = true;
  }
  EXPECT_EQ(held, 14u) << ran.out << ran.err;
  EXPECT_EQ(said["holds"], !runtime);
  EXPECT_EQ(ran.code(), runtime ? 1 : 0);
}

// The same trials where nothing holds the limit: each must be seen to fail.
TEST_F(GuardVerify, VerifySeesALimitThatDoesNotHold) {
  const Ran ran = cufit("CUFIT_DOMAIN=\"$DIR/domain\" \"$CUFIT\" quota verify --json");
  const Json said = Json::parse(ran.out, nullptr, false);
  EXPECT_EQ(ran.code(), 1) << ran.err;
  EXPECT_EQ(said["holds"], false);
  size_t leaks = 0;
  for (const Json& trial : said["trials"]) leaks += trial["proof"] == "leaks";
  EXPECT_EQ(leaks, 14u) << ran.out;
}

TEST_F(GuardVerify, VerifyOnACardWithoutRoom) {
  guarded = false;
  environment = {"CUFIT_RING="};
  pid_t other = start(k_start + "alloc a 3400M\nsleep 60");
  for (int i = 0; i < 2000 && card_used() < 3700 * k_mib; ++i) usleep(5000);
  environment = {};
  const Ran ran = cufit("\"$CUFIT\" quota verify");
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.out, "the card itself has no room")) << ran.out;
  end(other);
}

TEST_F(GuardVerify, VerifyWithoutADriver) {
  const Ran ran = cufit("LD_LIBRARY_PATH=/nowhere \"$CUFIT\" quota verify");
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.out, "Nothing was tried")) << ran.out;
  EXPECT_EQ(cufit("\"$CUFIT\" quota verify --vram 100MiB").code(), 2);
}

// Each GPU that CUDA shows, not the first alone.
TEST_F(GuardVerify, EveryGpuIsTried) {
  add_card("");
  const Json said = verify("");
  ASSERT_EQ(said["gpus"].size(), 2u) << said.dump(1);
  EXPECT_EQ(said["gpus"][1]["uuid"], "GPU-00000000-1111-2222-3333-444444444441");
  EXPECT_EQ(count(said, 0, "holds"), 14u);
  EXPECT_EQ(count(said, 1, "holds"), 14u);
  const Json one = verify("--gpu 1");
  ASSERT_EQ(one["gpus"].size(), 1u);
  EXPECT_EQ(one["gpus"][0]["gpu"], 1);
  EXPECT_EQ(one["other_gpus"], 1);
  EXPECT_EQ(count(one, 0, "holds"), 0u);
  EXPECT_EQ(count(one, 1, "holds"), 14u);
  EXPECT_EQ(verify("--gpu GPU-00000000-1111-2222-3333-444444444441")["gpus"][0]["gpu"], 1);
  const Ran text = cufit("\"$CUFIT\" quota verify --gpu 0");
  EXPECT_TRUE(has(text.out, "Not tried: other GPUs that CUDA shows here (1)")) << text.out;
  const Ran none = cufit("\"$CUFIT\" quota verify --gpu 2");
  EXPECT_EQ(none.code(), 2);
  EXPECT_TRUE(has(none.err, "`--gpu 2`: no such GPU; CUDA shows 2 here")) << none.err;
}

// In the quota in which it runs: a GPU without a limit is said, one that others fill is not called wrong.
TEST_F(GuardVerify, TheQuotaThatItRunsIn) {
  add_card("");
  limit(3000);
  const std::string inside = "export CUFIT_DOMAIN=\"$DIR/domain\" LD_PRELOAD=\"" + guard + "\"; ";
  Json said = Json::parse(cufit(inside + "\"$CUFIT\" quota verify --json").out, nullptr, false);
  ASSERT_EQ(said["gpus"].size(), 2u) << said.dump(1);
  EXPECT_EQ(said["gpus"][0]["limit_bytes"], 3000 * k_mib);
  EXPECT_EQ(said["gpus"][1]["skipped"], "no_limit");
  EXPECT_EQ(count(said, 0, "holds"), 14u);
  EXPECT_EQ(count(said, 1, "holds"), 0u);
  const pid_t other = holder(1500);
  said = Json::parse(cufit(inside + "\"$CUFIT\" quota verify --json").out, nullptr, false);
  EXPECT_EQ(count(said, 0, "holds"), 14u) << said.dump(1);
  end(other);
  limit(3000);  // without the slots of the dead
  const pid_t large = holder(2000);
  const Ran ran = cufit(inside + "\"$CUFIT\" quota verify");
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(has(ran.out, "only 700.0 MiB are free and a trial needs 1 GiB")) << ran.out;
  end(large);
}

// The program's figures are its own, without those of the trials.
TEST_F(GuardVerify, AProgramUnderTheSameLimit) {
  const std::string actor = binary_dir() + "/guard_card/guard_actor";
  const std::string program =
      " -- \"" + actor + "\" dlsym 'init\ncontext 0\nalloc a 700M\nalloc b 1500M'";
  const Json said = verify(program);
  // 700 and the constant for a context, where NVML does not tell a process what it holds.
  EXPECT_EQ(said["command"]["peak_bytes"], 1212 * k_mib) << said.dump(1);
  EXPECT_EQ(said["command"]["refusals"], 1);
  EXPECT_EQ(cufit("\"$CUFIT\" quota verify -- /nowhere/program").code(), 3);
}

TEST_F(GuardVerify, WithoutAGpu) {
  int code = 0;
  const Json said = Json::parse(cufit("CUDA_VISIBLE_DEVICES=-1 \"$CUFIT\" quota verify --json").out,
                                nullptr, false);
  EXPECT_EQ(said["holds"], false) << said.dump(1);
  verify("", &code);
  EXPECT_EQ(code, 1);
  EXPECT_TRUE(has(cufit("CUDA_VISIBLE_DEVICES=-1 \"$CUFIT\" quota verify").out, "cuInit (100)"));
}

}  // namespace
}  // namespace cufit::test
