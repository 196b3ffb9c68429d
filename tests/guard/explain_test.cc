// SPDX-License-Identifier: Apache-2.0
// `cufit explain FILE.ring` of processes under the guard: the cause, and that its step works.
#include <csignal>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "guarded.h"

namespace cufit::test {
namespace {

using Json = nlohmann::json;

const std::string k_start = "init\ncontext 0\n";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class GuardExplain : public Guarded {
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
  std::string ring_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(path("rings")))
      return entry.path().string();
    return {};
  }
  Ran explain(const std::string& more = "") {
    return cufit("\"$CUFIT\" explain \"" + ring_file() + "\" " + more);
  }
  void forget_rings() {
    std::filesystem::remove_all(path("rings"));
    std::filesystem::create_directory(path("rings"));
  }
};

TEST_F(GuardExplain, ExplainTheQuotaRefusedThisProcess) {
  run(k_start + "alloc a 500M\nalloc b 300M\ndie");
  const Ran ran = explain();
  EXPECT_EQ(ran.code(), 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "The run's own quota (cufit run --vram) refused the memory")) << ran.out;
  // 800 held and 300 asked: 1100, in steps of 256.
  EXPECT_TRUE(has(ran.out, "cufit run --vram 1280MiB -- COMMAND")) << ran.out;
  const Json said = Json::parse(explain("--json").out, nullptr, false);
  EXPECT_EQ(said["causes"][0]["id"], "cufit_quota_reached") << said.dump(1);
  EXPECT_EQ(said["causes"][0]["confidence"], "certain");
}

TEST_F(GuardExplain, ExplainOthersOfTheQuotaHadMostOfIt) {
  limit(1200);
  guarded = true;
  const pid_t other = holder(500);
  std::filesystem::remove_all(path("rings"));
  std::filesystem::create_directory(path("rings"));
  run(k_start + "alloc b 300M\ndie");
  const Ran ran = explain();
  EXPECT_TRUE(has(ran.out, "the other processes of the same domain had")) << ran.out;
  // 800 of the other, 300 of a context and 300 asked: 1400, in steps of 256.
  EXPECT_TRUE(has(ran.out, "cufit run --vram 1536MiB -- COMMAND")) << ran.out;
  EXPECT_FALSE(has(ran.out, "cufit quota status")) << ran.out;
  end(other);
}

// A share has the limit of its first launch, so the step names the share, and what must end before.
TEST_F(GuardExplain, ExplainALaunchOfAShare) {
  limit(1000);
  domain.name = "team-a";
  write_domain();
  run(k_start + "alloc b 900M\ndie");
  const std::string said = explain().out;
  EXPECT_TRUE(has(said, "cufit run --vram 1280MiB --share team-a -- COMMAND")) << said;
  EXPECT_FALSE(has(said, "cufit run --vram 1280MiB -- COMMAND")) << said;
}

// A GPU that the program has not touched keeps its limit too: the other form would raise it, or ask for more than it has.
TEST_F(GuardExplain, ExplainKeepsTheLimitOfAnUntouchedGpu) {
  add_card("");
  formats::QuotaDevice other;
  other.uuid = "GPU-00000000-1111-2222-3333-444444444441";
  other.limit_bytes = 512 * k_mib, other.total_bytes = 4096 * k_mib;
  domain.devices.push_back(other);
  write_domain();
  run(k_start + "alloc b 900M\ndie");
  const std::string said = explain().out;
  EXPECT_TRUE(has(said, "cufit run --vram 0:1280MiB,1:512MiB -- COMMAND")) << said;
}

TEST_F(GuardExplain, ExplainNoQuotaOfTheCardWouldDo) {
  run(k_start + "alloc a 100M\nalloc b 4000M\ndie");
  const std::string said = explain().out;
  EXPECT_TRUE(has(said, "cufit fit -- COMMAND")) << said;
  EXPECT_FALSE(has(said, "cufit run --vram 4")) << said;
}

// The card is full with what others hold, and the quota is not.
TEST_F(GuardExplain, ExplainTheCardWasFull) {
  limit(8000);
  guarded = false;
  environment = {"CUFIT_RING="};
  pid_t other = start(k_start + "alloc a 3000M\nsleep 60");
  for (int i = 0; i < 2000 && card_used() < 3300 * k_mib; ++i) usleep(5000);
  guarded = true;
  environment = {};
  run(k_start + "alloc b 900M\ndie");
  const Json said = Json::parse(explain("--json").out, nullptr, false);
  EXPECT_EQ(said["causes"][0]["id"], "other_process") << said.dump(1);
  end(other);
}

// torch frees its cache and asks again: a refusal that was survived is no cause.
TEST_F(GuardExplain, ExplainWhoCameThroughWasNotEndedByIt) {
  run(k_start + "alloc a 500M\nalloc b 500M\nfree a\nalloc b 500M");
  const Ran ran = explain("--json");
  EXPECT_FALSE(has(ran.out, "cufit_quota_reached")) << ran.out;
  EXPECT_EQ(ran.code(), 1);
  EXPECT_TRUE(Json::parse(ran.out, nullptr, false)["causes"].empty()) << ran.out;
  EXPECT_TRUE(has(explain().out, "survived each refusal"));
}

TEST_F(GuardExplain, ExplainWhoWasNeverRefused) {
  run(k_start + "alloc a 500M\nfree a\nalloc b 100M");
  const Ran ran = explain();
  EXPECT_EQ(ran.code(), 1) << ran.err;
  EXPECT_TRUE(has(ran.out, "This process was never refused GPU memory")) << ran.out;
  EXPECT_TRUE(has(ran.out, "high water 800 MiB")) << ran.out;
  EXPECT_FALSE(has(ran.out, "possible")) << ran.out;
  EXPECT_TRUE(has(explain("--lang zh").out, "从未被拒绝"));
}

TEST_F(GuardExplain, ExplainWhoWentOnWithLess) {
  run(k_start + "alloc a 2000M\nalloc b 500M");
  const Json said = Json::parse(explain("--json").out, nullptr, false);
  ASSERT_FALSE(said["causes"].empty());
  EXPECT_EQ(said["causes"][0]["id"], "cufit_quota_reached");
  for (const Json& cause : said["causes"]) EXPECT_EQ(cause["confidence"], "possible") << cause;
  EXPECT_TRUE(has(explain("-v").out, "went on with less"));
}

TEST_F(GuardExplain, ExplainADamagedRing) {
  run(k_start + "alloc a 100M");
  const std::string bytes = read_bytes(ring_file());
  write_bytes(path("cut.ring"), bytes.substr(0, 70000));
  const Ran ran = cufit("\"$CUFIT\" explain \"$DIR/cut.ring\"");
  EXPECT_EQ(ran.code(), 3);
  EXPECT_TRUE(has(ran.err, "cut.ring")) << ran.err;
  // Beside a text it is said, and the text is explained.
  const Ran both = cufit(
      "echo 'RuntimeError: CUDA error: out of memory' >\"$DIR/log\"\n"
      "\"$CUFIT\" explain \"$DIR/log\" \"$DIR/cut.ring\"");
  EXPECT_EQ(both.code(), 0) << both.err;
  EXPECT_TRUE(has(both.err, "cut.ring")) << both.err;
}

// The evidence in the reader's language; JSON keeps the English.
TEST_F(GuardExplain, InTheReadersLanguage) {
  run(k_start + "alloc a 500M\nalloc b 300M\ndie");
  const std::string zh = explain("--lang zh -v").out;
  EXPECT_TRUE(has(zh, "cufit 黑匣子：被 1.0 GiB 的配额拒绝")) << zh;
  EXPECT_FALSE(has(zh, "refused it")) << zh;
  EXPECT_FALSE(has(zh, "cufit ring:")) << zh;
  const std::string json = explain("--lang zh --json").out;
  EXPECT_TRUE(has(json, "cufit ring: the quota of 1.0 GiB refused it")) << json;
}

// What the step names is tried: the same program under that quota gets what it asked for.
TEST_F(GuardExplain, TheQuotaOfTheStepIsEnough) {
  describe("", "pool_step = 67108864");
  const char* const asks[] = {"alloc b 257M",   "alloc b 300001K", "vmm b 0 258M",
                              "async b 231M 0", "async b 300M 0",  "array b 270000K"};
  for (const std::string ask : asks) {
    limit(1024);
    forget_rings();
    const std::string script = k_start + "alloc a 723M\n" + ask;
    const Ran first = run(script + "\ndie");
    ASSERT_TRUE(has(first.out, ask + ": 2\n")) << first.out;
    const std::string said = explain().out;
    const size_t at = said.find("cufit run --vram ");
    ASSERT_NE(at, said.npos) << ask << said;
    const uint64_t mib = std::stoull(said.substr(at + 17));
    ASSERT_EQ(said.substr(at + 17 + std::to_string(mib).size(), 3), "MiB") << said;
    limit(mib);
    const Ran second = run(script);
    EXPECT_TRUE(has(second.out, ask + ": 0\n")) << mib << second.out;
  }
}

// The black box of a process that nobody could stop to write it.
TEST_F(GuardExplain, OfAProcessThatWasKilled) {
  const pid_t child = start(k_start + "alloc a 500M\nalloc b 300M\nsleep 60");
  for (int i = 0; i < 2000 && domain_now().devices.at(0).refusals == 0; ++i) usleep(5000);
  usleep(100000);
  end(child);
  const Ran ran = explain();
  EXPECT_EQ(ran.code(), 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "refused the memory")) << ran.out;
}

// Empty, cut anywhere, far too long, of other versions, full of noise: said, and never more.
TEST_F(GuardExplain, HostileFiles) {
  run(k_start + "alloc a 500M\nalloc b 300M\ndie");
  const std::string good = read_bytes(ring_file());
  const auto told = [&](const std::string& bytes) {
    write_bytes(path("x.ring"), bytes);
    return cufit("\"$CUFIT\" explain \"$DIR/x.ring\"");
  };
  EXPECT_EQ(told("").code(), 1);  // an empty text: no cause
  EXPECT_EQ(told(good.substr(0, 5)).code(), 1);
  for (const size_t length : {size_t{8}, size_t{9}, size_t{4096}, good.size() - 1}) {
    const Ran ran = told(good.substr(0, length));
    EXPECT_EQ(ran.code(), 3) << length;
    EXPECT_TRUE(has(ran.err, "x.ring")) << ran.err;
  }
  EXPECT_EQ(told(good + std::string(100u << 20, 'x')).code(), 0);  // the rest is not looked at
  std::string other = good;
  other[8] = 77;
  EXPECT_TRUE(has(told(other).err, "a ring of version 77"));
  uint64_t state = 1;
  for (int round = 0; round < 20; ++round) {
    std::string noise = good;
    for (size_t i = 32; i < noise.size(); i += 1 + state % 97) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      noise[i] = static_cast<char>(state >> 33);
    }
    const Ran ran = told(noise);
    EXPECT_TRUE(ran.code() == 0 || ran.code() == 1) << round << ran.err;
    EXPECT_FALSE(has(ran.out, "\x1b")) << round;
  }
}

}  // namespace
}  // namespace cufit::test
