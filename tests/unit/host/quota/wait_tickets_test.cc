// SPDX-License-Identifier: Apache-2.0
// Tickets of real processes: whose they are, which of them live, and what is left after kill -9 at any moment.
#include "host/quota/wait_tickets.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "../temporary_tree.h"
#include "base/format.h"

namespace cufit::host {
namespace wait_tickets_test {

using formats::WaitTicket;
using Dead = WaitQueue::Dead;

class WaitTickets : public testing::Test {
 protected:
  void SetUp() override {
    ::chmod(tree_.root().c_str(), 0700);
    ASSERT_EQ(::mkdir((tree_.root() + "/q").c_str(), 0700), 0);
  }
  RealHost host() const { return RealHost("/", {{"CUFIT_QUEUE", tree_.root() + "/q"}}); }
  WaitQueue queue() const { return std::move(*WaitQueue::open(host())); }
  size_t files() const {
    size_t out = 0;
    for (const auto& entry : std::filesystem::directory_iterator(tree_.root() + "/q")) {
      (void)entry;
      ++out;
    }
    return out;
  }
  static WaitTicket ticket() {
    WaitTicket out;
    out.cards = {{"GPU-0", 100}};
    return out;
  }
  static void file(WaitQueue& queue) {
    const auto lock = queue.lock(10);
    ASSERT_TRUE(lock);
    const Result<void> filed = queue.file(ticket());
    ASSERT_TRUE(filed) << filed.error().text();
  }
  static std::vector<LiveTicket> all(const WaitQueue& queue, Dead dead = Dead::leave) {
    const auto lock = queue.lock(10);
    EXPECT_TRUE(lock);
    return queue.read(dead).tickets;
  }
  // A child with a ticket, until it is killed.
  template <class Work>
  pid_t child(Work work) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const int done = ::fcntl(ready[1], F_DUPFD, 400);  // where no test closes it
      WaitQueue own = queue();
      file(own);
      work(own);
      (void)!::write(done, "x", 1);
      while (true) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]), ::close(ready[1]);
    return pid;
  }
  pid_t child() {
    return child([](WaitQueue&) {});
  }
  static void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  std::string only_file() const {
    return std::filesystem::directory_iterator(tree_.root() + "/q")->path().string();
  }

  TemporaryTree tree_;
};

TEST_F(WaitTickets, NumbersRiseAndTheFileGoesWithItsOwner) {
  WaitQueue first = queue();
  file(first);
  {
    WaitQueue second = queue();
    file(second);
    EXPECT_GT(second.own().number, first.own().number);
    const std::vector<LiveTicket> seen = all(second);
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].ticket.number, first.own().number);
    EXPECT_TRUE(seen[0].own);
  }
  EXPECT_EQ(all(first).size(), 1u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(WaitTickets, AKilledProcessHasNone) {
  const pid_t pid = child();
  WaitQueue reader = queue();
  ASSERT_EQ(all(reader).size(), 1u);
  EXPECT_EQ(all(reader)[0].ticket.pid, static_cast<uint32_t>(pid));
  ::kill(pid, SIGKILL);
  // It is dead before its parent has looked, and the file stays until somebody removes it.
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(all(reader).empty());
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(all(reader, Dead::remove).empty());
  EXPECT_EQ(files(), 0u);
  ::waitpid(pid, nullptr, 0);
}

TEST_F(WaitTickets, AProgramKeepsTheTicketOfItsLauncher) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    WaitQueue own = queue();
    file(own);
    own.keep_over_exec();
    ::dup2(ready[1], 1);
    ::execl("/bin/sh", "sh", "-c", "echo; exec sleep 60", nullptr);
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  WaitQueue reader = queue();
  const std::vector<LiveTicket> seen = all(reader, Dead::remove);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].ticket.pid, static_cast<uint32_t>(pid));
  end(pid);
  EXPECT_TRUE(all(reader, Dead::remove).empty());
}

// A program that closes what it does not know has no lock any more.
TEST_F(WaitTickets, AProcessWithoutItsLockIsKnownByItsStart) {
  const pid_t pid = child([](WaitQueue&) {
    for (int number = 3; number < 300; ++number) ::close(number);
    (void)!::open("/dev/null", O_RDONLY);
  });
  WaitQueue reader = queue();
  EXPECT_EQ(all(reader, Dead::remove).size(), 1u);
  end(pid);
  EXPECT_TRUE(all(reader, Dead::remove).empty());
  EXPECT_EQ(files(), 0u);
}

TEST_F(WaitTickets, AnotherProcessOfItsNumberHasNone) {
  WaitQueue reader = queue();
  std::string text;
  {
    WaitQueue own = queue();
    file(own);
    std::ifstream in(only_file());
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  // As after a reboot, or when numbers come round: this process, another start.
  WaitTicket other = formats::parse_wait_ticket(text).value();
  other.start_ticks += 1;
  const std::string name = format("{:020}-{}.ticket", other.number, other.pid);
  tree_.write("/q/" + name, formats::make_wait_ticket(other).value());
  EXPECT_TRUE(all(reader).empty());
  other.start_ticks -= 1;
  tree_.write("/q/" + name, formats::make_wait_ticket(other).value());
  EXPECT_EQ(all(reader).size(), 1u);
  other.boot = "another-boot";
  tree_.write("/q/" + name, formats::make_wait_ticket(other).value());
  EXPECT_TRUE(all(reader, Dead::remove).empty());
  EXPECT_EQ(files(), 1u);  // of a machine that this one cannot look at
}

// Process 1 lives for ever.
TEST_F(WaitTickets, SomebodyElsesProcessIsNoTicketsOwn) {
  struct stat first {};
  if (::stat("/proc/1", &first) != 0) GTEST_SKIP() << "no /proc/1";
  WaitQueue own = queue();
  file(own);
  WaitTicket other = own.own();
  std::ifstream in("/proc/1/stat");
  std::string stat((std::istreambuf_iterator<char>(in)), {});
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  other.pid = 1;
  other.start_ticks = std::stoull(field);
  const std::string name = format("/q/{:020}-1.ticket", other.number);
  tree_.write(name, formats::make_wait_ticket(other).value());
  if (first.st_uid == ::geteuid()) {  // the tester is root: the file is another user's
    EXPECT_EQ(all(own).size(), 2u);
    ASSERT_EQ(::chown(tree_.at(name).c_str(), 65534, 65534), 0);
  }
  EXPECT_EQ(all(own).size(), 1u);
}

// A number that has not come yet would put everybody who comes later behind it, and leave no number above it.
TEST_F(WaitTickets, NobodyIsPutBehindTheFuture) {
  WaitQueue first = queue();
  file(first);
  WaitTicket liar = first.own();
  liar.number = UINT64_MAX - 1;
  tree_.write(format("/q/{:020}-{}.ticket", liar.number, liar.pid),
              formats::make_wait_ticket(liar).value());
  WaitQueue second = queue();
  file(second);
  EXPECT_GT(second.own().number, first.own().number);
  EXPECT_LT(second.own().number, liar.number);
}

TEST_F(WaitTickets, AStoppedLauncherIsSaid) {
  const pid_t pid = child();
  WaitQueue reader = queue();
  EXPECT_FALSE(all(reader)[0].stopped);
  ::kill(pid, SIGSTOP);
  ::waitpid(pid, nullptr, WUNTRACED);
  EXPECT_TRUE(all(reader)[0].stopped);
  ::kill(pid, SIGCONT);
  ::waitpid(pid, nullptr, WCONTINUED);
  EXPECT_FALSE(all(reader)[0].stopped);
  end(pid);
}

TEST_F(WaitTickets, WhatIsNoTicketIsLeftOut) {
  const std::string folder = tree_.root() + "/q/";
  tree_.write("/q/junk.ticket", "hello");
  tree_.write("/q/large.ticket", std::string(1 << 20, 'x'));
  ASSERT_EQ(::mkfifo((folder + "fifo.ticket").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir((folder + "folder.ticket").c_str(), 0700), 0);
  tree_.link("/q/link.ticket", "/etc/passwd");
  const pid_t pid = child();
  WaitQueue reader = queue();
  EXPECT_EQ(all(reader).size(), 1u);
  // A ticket under another name than its own: a copy.
  std::filesystem::copy_file(folder + all(reader)[0].name, folder + "copy.ticket");
  EXPECT_EQ(all(reader).size(), 1u);
  // Damaged while its process lives: said.
  { std::ofstream(folder + all(reader)[0].name) << "damage"; }
  const auto lock = reader.lock(10);
  const QueueReading read = reader.read(Dead::remove);
  EXPECT_TRUE(read.tickets.empty());
  EXPECT_EQ(read.damaged.size(), 1u);
  end(pid);
}

TEST_F(WaitTickets, ManyFilesOfOthersAreNotReadForEver) {
  WaitQueue own = queue();
  file(own);
  for (uint64_t i = 1; i < 600; ++i) {
    WaitTicket one = own.own();  // this very process has them all
    one.number = i;
    tree_.write(format("/q/{:020}-{}.ticket", one.number, one.pid),
                formats::make_wait_ticket(one).value());
  }
  EXPECT_EQ(all(queue()).size(), 512u);
}

TEST_F(WaitTickets, AFolderThatOthersCouldEmptyIsRefused) {
  const std::string folder = tree_.root() + "/q";
  ::chmod(folder.c_str(), 0777);
  const Result<WaitQueue> open = WaitQueue::open(host());
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().what.find("chmod 1777"), std::string::npos) << open.error().what;
  ::chmod(folder.c_str(), 01777);
  EXPECT_TRUE(WaitQueue::open(host()));
  EXPECT_FALSE(WaitQueue::open(RealHost("/", {{"CUFIT_QUEUE", "relative"}})));
  EXPECT_FALSE(WaitQueue::open(RealHost("/", {{"CUFIT_QUEUE", folder + "/none"}})));
  tree_.write("/file", "");
  EXPECT_FALSE(WaitQueue::open(RealHost("/", {{"CUFIT_QUEUE", tree_.root() + "/file"}})));
}

TEST_F(WaitTickets, AFullFileSystemIsSaidAndNothingIsLeft) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);  // as a disk with room for half of it
    WaitQueue own = queue();
    bool refused = false;
    {
      const auto lock = own.lock(10);
      refused = !own.file(ticket());
    }
    { const WaitQueue gone = std::move(own); }
    ::_exit(refused ? 0 : 1);
  }
  int status = 1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files(), 0u);
}

// The folder stays locked by a process that is stopped: the others say so and try again.
TEST_F(WaitTickets, ALockThatIsHeldForLongIsGivenUp) {
  WaitQueue one = queue(), two = queue();
  const auto held = one.lock(1);
  ASSERT_TRUE(held);
  const auto refused = two.lock(0.05);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::timeout);
}

// Fifty waiting processes that start in turn, each killed at a random moment of its life: who lives gets its turn in order.
TEST_F(WaitTickets, KilledAtAnyMomentTheQueueDrainsInOrder) {
  const std::string log = tree_.root() + "/log";
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  std::mt19937 random(7);
  constexpr int k_count = 50;
  std::vector<pid_t> pids;
  for (int i = 0; i < k_count; ++i) {
    const pid_t pid = ::fork();
    if (pid != 0) {
      pids.push_back(pid);
      continue;
    }
    WaitQueue own = queue();
    {
      const auto lock = own.lock(60);
      if (!lock || !own.file(ticket())) ::_exit(2);
    }
    while (true) {
      {
        const auto lock = own.lock(60);
        if (!lock) ::_exit(3);
        const QueueReading read = own.read(Dead::remove);
        bool first = true, busy = false;
        for (const LiveTicket& other : read.tickets) {
          busy = busy || other.ticket.started;
          first = first && (other.ticket.started || other.ticket.number >= own.own().number);
        }
        if (first && !busy) {
          WaitTicket started = own.own();
          started.started = true;
          if (!own.change(started)) ::_exit(4);
          const std::string line = format("{}\n", started.number);
          (void)!::write(out, line.data(), line.size());
          break;
        }
      }
      ::usleep(1000);
    }
    ::usleep(2000);
    ::_exit(0);  // as a program: nobody removes the ticket
  }
  std::vector<pid_t> victims = pids;
  std::shuffle(victims.begin(), victims.end(), random);
  for (int i = 0; i < k_count / 2; ++i) {
    ::usleep(random() % 6000);
    ::kill(victims[static_cast<size_t>(i)], SIGKILL);
  }
  int ended = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    for (int i = 0; i < 60000 && ::waitpid(pid, &status, WNOHANG) == 0; ++i) ::usleep(1000);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
    ended += killed ? 0 : 1;
  }
  EXPECT_GE(ended, k_count / 2);
  ::close(out);
  std::ifstream lines(log);
  uint64_t before = 0, number = 0;
  int started = 0;
  for (; lines >> number; ++started) {
    EXPECT_GT(number, before);
    before = number;
  }
  EXPECT_GE(started, ended);
  EXPECT_TRUE(all(queue(), Dead::remove).empty());
  EXPECT_EQ(files(), 0u);
}

TEST(WaitTicketAncestor, IsFoundThroughChildren) {
  const auto own = static_cast<uint32_t>(::getpid());
  EXPECT_EQ(ancestor_among(own, {own}), own);
  EXPECT_EQ(ancestor_among(own, {static_cast<uint32_t>(::getppid())}),
            static_cast<uint32_t>(::getppid()));
  EXPECT_EQ(ancestor_among(own, {}), 0u);
  EXPECT_EQ(ancestor_among(4294967295u, {own}), 0u);
}

}  // namespace wait_tickets_test
}  // namespace cufit::host
