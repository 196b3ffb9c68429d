// SPDX-License-Identifier: Apache-2.0
// Processes that are killed, fork, exec, close everything, or all come at once.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guarded.h"

namespace cufit::test {
namespace {

const std::string k_start = "init\ncontext 0\n";

class GuardCrash : public Guarded {
 protected:
  void SetUp() override {
    Guarded::SetUp();
    null_ = open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  void TearDown() override {
    close(null_);
    Guarded::TearDown();
  }
  int null_ = -1;
};

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// HAMi-core 86: killed at any moment of its start, of an allocation, of its end. Each time the next process gets all
// of the quota. CUFIT_GUARD_KILLS=500 for the long run.
TEST_F(GuardCrash, R01_KilledAtAnyMoment) {
  const char* wanted = std::getenv("CUFIT_GUARD_KILLS");
  int kills = wanted ? std::atoi(wanted) : 60;
  std::mt19937 random(1);
  std::string script = "init\ncontext 0\nmany 20 10M\nasync p 100M\nvmm h 0 100M\nhold 30M 1";
  for (int i = 0; i < kills; ++i) {
    pid_t child = start(script, i % 2 ? "gpa" : "dlsym", "guard_actor", null_, null_);
    usleep(random() % 25000);
    kill(child, SIGKILL);
    wait_for(child);
    if (i % 5 != 4) continue;
    Ran ran = run("init\ncontext 0\nalloc a 722M\ninfo");
    ASSERT_EQ(ran.out, "init: 0\ncontext 0: 0\nalloc a 722M: 0\ninfo: 0 free 2 total 1024\n") << i;
  }
  EXPECT_LE(card_peak(), 1024 * k_mib);
}

// HAMi-core 248, 260, HAMi 2500: the next one waits 327 s.
TEST_F(GuardCrash, R02_AKilledProcessBlocksNobody) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pid_t child =
      start(k_start + "many 72 10M\nsleep 60", "dlsym", "guard_actor", pipe_ends[1], null_);
  close(pipe_ends[1]);
  std::string seen;
  char piece[256];
  while (seen.find("many") == std::string::npos) {
    ssize_t got = read(pipe_ends[0], piece, sizeof piece);
    ASSERT_GT(got, 0);
    seen.append(piece, static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  EXPECT_EQ(run("init\ncontext 0").out, "init: 0\ncontext 0: 2\n");  // full
  kill(child, SIGKILL);
  wait_for(child);
  EXPECT_EQ(run(k_start + "alloc a 700M").out, "init: 0\ncontext 0: 0\nalloc a 700M: 0\n");
}

// Its workers live on: they do not hold what it held.
TEST_F(GuardCrash, AForkedWorkerHoldsNothingOfItsParent) {
  pid_t child = start_until("many", k_start + "many 70 10M\nfork sleep 3\nsleep 3");
  const std::string pid = std::to_string(child),
                    children = "/proc/" + pid + "/task/" + pid + "/children";
  for (int i = 0; i < 2000 && read_bytes(children).empty(); ++i) usleep(5000);
  ASSERT_FALSE(read_bytes(children).empty());
  kill(child, SIGKILL);
  wait_for(child);
  EXPECT_EQ(run(k_start + "alloc a 700M").out, "init: 0\ncontext 0: 0\nalloc a 700M: 0\n");
}

TEST_F(GuardCrash, AForkedChildBeginsWithNothing) {
  Ran ran = run(k_start + "alloc a 300M\nfork free a; alloc b 300M\ninfo\nfree a\ninfo");
  EXPECT_EQ(ran.out,
            "init: 0\ncontext 0: 0\nalloc a 300M: 0\nfree a: 1\nalloc b 300M: 0\nfork: 0\n"
            "info: 0 free 424 total 1024\nfree a: 0\ninfo: 0 free 724 total 1024\n");
}

// The launcher removed the file while children of its children still come.
TEST_F(GuardCrash, AForkedChildKeepsTheDomain) {
  EXPECT_EQ(
      run(k_start +
          "alloc a 300M\nunlink\nfork init; context 0; alloc b 100M; alloc c 200M\nfree a\ninfo")
          .out,
      "init: 0\ncontext 0: 0\nalloc a 300M: 0\nunlink: 0\ninit: 0\ncontext 0: 0\nalloc b 100M: 0\n"
      "alloc c 200M: 2\nfork: 2\nfree a: 0\ninfo: 0 free 724 total 1024\n");
}

TEST_F(GuardCrash, ExecGivesBackWhatTheProgramHeld) {
  // Another program under the guard, with the pid and the start of the first.
  EXPECT_EQ(run(k_start + "alloc a 700M\nexec gpa init\n").out,
            "init: 0\ncontext 0: 0\nalloc a 700M: 0\ninit: 0\n");
  write_bytes(path("again"), "");
  pid_t child = start_until("alloc a", k_start + "alloc a 700M\nother 5");
  const auto is_actor = [&] {
    return std::filesystem::read_symlink("/proc/" + std::to_string(child) + "/exe").filename() ==
           "guard_actor";
  };
  for (int i = 0; i < 2000 && is_actor(); ++i) usleep(5000);
  ASSERT_FALSE(is_actor());
  EXPECT_GT(used_mib(), 900u);  // nobody has swept yet
  // The card of the tests does not know of exec; the quota does.
  EXPECT_EQ(run(k_start + "alloc a 700M").out, "init: 0\ncontext 0: 0\nalloc a 700M: 0\n");
  kill(child, SIGKILL);
  wait_for(child);
}

// A program that closes what it does not know drops the lock of its slot; it is alive all the same.
TEST_F(GuardCrash, ClosingAllDescriptorsGivesNothingAway) {
  pid_t child = start_until("closefds", k_start + "alloc a 500M\nclosefds\nsleep 60");
  EXPECT_EQ(run(k_start + "info").out, "init: 0\ncontext 0: 2\ninfo: 201\n");
  EXPECT_EQ(used_mib(), 800u);
  kill(child, SIGKILL);
  wait_for(child);
  Ran ran = run(k_start + "closefds\nalloc a 800M\nalloc b 700M\ninfo");
  EXPECT_NE(ran.out.find("alloc a 800M: 2\nalloc b 700M: 0\ninfo: 0 free 24 total 1024\n"),
            std::string::npos)
      << ran.out;
}

// Sixty-four at once: what the card itself counted never passes the limit.
TEST_F(GuardCrash, ManyProcessesNeverPassTheLimit) {
  limit(1000, 0);
  describe("", "context = 0");
  std::vector<pid_t> children;
  for (int i = 0; i < 64; ++i)
    children.push_back(start(k_start + "hold " + std::to_string(6 + i % 50) + "M 2",
                             i % 2 ? "gpa" : "dlsym", "guard_actor", null_, null_));
  for (pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_LE(card_peak(), 1000 * k_mib);
  EXPECT_GE(card_peak(), 900 * k_mib);
  EXPECT_EQ(run(k_start + "alloc a 1000M").out, "init: 0\ncontext 0: 0\nalloc a 1000M: 0\n");
  EXPECT_EQ(domain_now().devices.at(0).peak_bytes / k_mib, 1000u);
}

// More of them than the file has room for: refused, not unlimited.
TEST_F(GuardCrash, MoreProcessesThanSlots) {
  domain.slot_count = 1;
  write_domain();
  pid_t child = start(k_start + "alloc a 10M\nsleep 5", "dlsym", "guard_actor", null_, null_);
  for (int i = 0; i < 200 && used_mib() < 300; ++i) usleep(10000);
  EXPECT_EQ(run(k_start).out, "init: 0\ncontext 0: 2\n");
  kill(child, SIGKILL);
  wait_for(child);
  EXPECT_EQ(run(k_start).out, "init: 0\ncontext 0: 0\n");
}

TEST_F(GuardCrash, ThreadsOfOneProcess) {
  Ran ran = run(k_start + "threads 8 300 40M\nthreads 8 300 100K\ninfo");
  EXPECT_EQ(ran.out,
            "init: 0\ncontext 0: 0\nthreads 8 300 40M: 0\nthreads 8 300 100K: 0\ninfo: 0 free 724 "
            "total 1024\n");
  EXPECT_LE(card_peak(), 1024 * k_mib);
}

}  // namespace
}  // namespace cufit::test
