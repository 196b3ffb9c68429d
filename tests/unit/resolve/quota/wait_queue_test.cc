// SPDX-License-Identifier: Apache-2.0
// Who may start where, and a simulated day of arrivals, ends and kills: never more is kept than a card has, nobody starts
// before an earlier launch that wants the same card, and everybody starts in the end.
#include "resolve/quota/wait_queue.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace wait_queue_test {

constexpr uint64_t k_gib = uint64_t{1} << 30;

RoomOfCard card(const std::string& uuid, uint64_t free_gib, uint64_t total_gib = 80) {
  RoomOfCard out;
  out.uuid = uuid;
  out.total_bytes = total_gib * k_gib;
  out.free_bytes = free_gib * k_gib;
  out.idle = free_gib == total_gib;
  out.processes = out.idle ? 0 : 1;
  return out;
}

QueuedLaunch launch(uint64_t number, uint64_t gib, std::vector<std::string> uuids) {
  QueuedLaunch out;
  out.number = number;
  for (std::string& uuid : uuids) out.cards.push_back({uuid, gib * k_gib, 0});
  return out;
}

QueuedLaunch running(uint64_t number, uint64_t gib, const std::string& uuid, uint64_t used_gib) {
  QueuedLaunch out = launch(number, gib, {uuid});
  out.started = true;
  out.cards[0].used_bytes = used_gib * k_gib;
  return out;
}

std::vector<size_t> places(std::initializer_list<size_t> list) { return list; }

TEST(WaitQueue, WhatAJobHasNotTouchedIsKept) {
  // Of 80 GiB 10 are used by a job that may take 60: 20 are left for others.
  const std::vector<QueuedLaunch> queue = {running(1, 60, "a", 10)};
  EXPECT_EQ(decide_start({card("a", 70)}, queue, launch(2, 20, {"a"})).wait_for, WaitFor::nothing);
  const WaitDecision more = decide_start({card("a", 70)}, queue, launch(2, 21, {"a"}));
  EXPECT_EQ(more.wait_for, WaitFor::room);
  EXPECT_EQ(more.best_bytes, 20 * k_gib);
  EXPECT_EQ(more.kept_bytes, 50 * k_gib);
  // What it holds beyond that is not counted twice.
  EXPECT_EQ(decide_start({card("a", 20)}, {running(1, 60, "a", 60)}, launch(2, 20, {"a"})).wait_for,
            WaitFor::nothing);
}

TEST(WaitQueue, ATicketKeepsNoMoreThanTheCardHas) {
  QueuedLaunch liar = running(1, 1, "a", 0);
  liar.cards[0].bytes = UINT64_MAX;
  const WaitDecision out = decide_start({card("a", 80)}, {liar, liar}, launch(2, 1, {"a"}));
  EXPECT_EQ(out.wait_for, WaitFor::room);
  EXPECT_EQ(out.kept_bytes, 160 * k_gib);
}

TEST(WaitQueue, WhoCameFirstIsFirstWhereTheyWantTheSameCard) {
  const std::vector<RoomOfCard> room = {card("a", 30), card("b", 30)};
  // The one before needs more than there is; the next would fit and does not pass.
  const std::vector<QueuedLaunch> queue = {launch(1, 40, {"a"}), launch(2, 10, {"a"})};
  const WaitDecision behind = decide_start(room, queue, queue[1]);
  EXPECT_EQ(behind.wait_for, WaitFor::turn);
  EXPECT_EQ(behind.before, 1u);
  // Another card is no business of the first one.
  EXPECT_EQ(decide_start(room, queue, launch(3, 10, {"b"})).wait_for, WaitFor::nothing);
  const WaitDecision last = decide_start(room, queue, launch(3, 10, {"a", "b"}));
  EXPECT_EQ(last.wait_for, WaitFor::turn);
  EXPECT_EQ(last.before, 2u);
}

TEST(WaitQueue, WhoCannotStartIsNotWaitedFor) {
  const std::vector<RoomOfCard> room = {card("a", 30)};
  QueuedLaunch stopped = launch(1, 40, {"a"});
  stopped.stopped = true;
  EXPECT_EQ(decide_start(room, {stopped}, launch(2, 10, {"a"})).wait_for, WaitFor::nothing);
  // More than the card has: it would be waited for until somebody ends it.
  EXPECT_EQ(decide_start(room, {launch(1, 90, {"a"})}, launch(2, 10, {"a"})).wait_for,
            WaitFor::nothing);
  QueuedLaunch two = launch(1, 10, {"a"});
  two.count = 2;
  EXPECT_EQ(decide_start(room, {two}, launch(2, 10, {"a"})).wait_for, WaitFor::nothing);
  // A card that this launch does not see may have it.
  EXPECT_EQ(decide_start(room, {launch(1, 90, {"a", "x"})}, launch(2, 10, {"a"})).wait_for,
            WaitFor::turn);
}

TEST(WaitQueue, TheCardWithTheFewestUsersThenTheMostFree) {
  std::vector<RoomOfCard> room = {card("a", 60), card("b", 50), card("c", 70)};
  room[2].processes = 2;
  const QueuedLaunch mine = launch(9, 10, {"a", "b", "c"});
  EXPECT_EQ(decide_start(room, {}, mine).cards, places({0}));
  EXPECT_EQ(decide_start(room, {running(1, 10, "a", 10)}, mine).cards, places({1}));
  room[0] = room[1] = card("a", 50);
  room[1].uuid = "b";
  EXPECT_EQ(decide_start(room, {}, mine).cards, places({0}));  // the first of equals
}

TEST(WaitQueue, SeveralCardsInTheirOwnOrder) {
  const std::vector<RoomOfCard> room = {card("a", 20), card("b", 5), card("c", 70)};
  QueuedLaunch mine = launch(9, 10, {"c", "b", "a"});
  mine.count = 2;
  EXPECT_EQ(decide_start(room, {}, mine).cards, places({0, 2}));
  mine.count = 3;
  const WaitDecision three = decide_start(room, {}, mine);
  EXPECT_EQ(three.wait_for, WaitFor::room);
  EXPECT_EQ(three.fitting, 2u);
  mine.count = 4;
  EXPECT_EQ(decide_start(room, {}, mine).wait_for, WaitFor::never);
  EXPECT_EQ(decide_start(room, {}, launch(9, 81, {"a"})).wait_for, WaitFor::never);
}

TEST(WaitQueue, AWholeCardIsOneThatNobodyUses) {
  QueuedLaunch mine = launch(9, 80, {"a"});
  mine.whole = true;
  EXPECT_EQ(decide_start({card("a", 79)}, {}, mine).wait_for, WaitFor::room);
  EXPECT_EQ(decide_start({card("a", 80)}, {}, mine).wait_for, WaitFor::nothing);
  // Started and not yet on the card.
  EXPECT_EQ(decide_start({card("a", 80)}, {running(1, 1, "a", 0)}, mine).wait_for, WaitFor::room);
  QueuedLaunch alone = running(1, 80, "a", 0);
  alone.whole = true;
  EXPECT_EQ(decide_start({card("a", 80)}, {alone}, launch(9, 1, {"a"})).wait_for, WaitFor::room);
}

TEST(WaitQueue, AnExclusiveCardTakesOneProcess) {
  std::vector<RoomOfCard> room = {card("a", 60)};
  room[0].exclusive = true;
  EXPECT_EQ(decide_start(room, {}, launch(9, 10, {"a"})).wait_for, WaitFor::room);
  room[0] = card("a", 80);
  room[0].exclusive = true;
  EXPECT_EQ(decide_start(room, {}, launch(9, 10, {"a"})).wait_for, WaitFor::nothing);
  room[0].usable = false;
  EXPECT_EQ(decide_start(room, {}, launch(9, 10, {"a"})).wait_for, WaitFor::never);
}

// The driver holds some MiB of an idle card: `--vram 100%` would wait for ever.
TEST(WaitQueue, AllOfAnIdleCardIsWhatIsFree) {
  RoomOfCard room = card("a", 80);
  *room.free_bytes -= 300 << 20;
  EXPECT_EQ(decide_start({room}, {}, launch(9, 80, {"a"})).wait_for, WaitFor::nothing);
  *room.free_bytes -= k_gib;
  EXPECT_EQ(decide_start({room}, {}, launch(9, 80, {"a"})).wait_for, WaitFor::room);
  *room.free_bytes += k_gib;
  room.idle = false;
  EXPECT_EQ(decide_start({room}, {}, launch(9, 80, {"a"})).wait_for, WaitFor::room);
}

TEST(WaitQueue, LaunchesOfOneQuotaHaveOnePlace) {
  QueuedLaunch first = running(1, 60, "a", 50), other = launch(2, 60, {"a"});
  first.group = "1000:team";
  QueuedLaunch mine = launch(3, 60, {"a", "b"});
  mine.group = "1000:team";
  const std::vector<RoomOfCard> room = {card("a", 12), card("b", 12)};
  // The ten that are left of the quota are kept for it: nobody's turn is taken.
  const WaitDecision joins = decide_start(room, {first, other}, mine);
  EXPECT_EQ(joins.wait_for, WaitFor::nothing);
  EXPECT_EQ(joins.cards, places({0}));
  EXPECT_EQ(decide_start(room, {other}, mine).wait_for, WaitFor::turn);
  // Two launches of it keep its limit once.
  QueuedLaunch second = first;
  second.number = 4;
  EXPECT_EQ(decide_start({card("a", 30)}, {first, second}, launch(5, 20, {"a"})).wait_for,
            WaitFor::nothing);
  EXPECT_EQ(decide_start({card("a", 30)}, {first, second}, launch(5, 21, {"a"})).wait_for,
            WaitFor::room);
  // Another user's of the same name is another one.
  mine.group = "1001:team";
  EXPECT_EQ(decide_start(room, {first}, mine).wait_for, WaitFor::room);
}

// A script that has a whole card, and each of its steps wants one again.
TEST(WaitQueue, AJobsOwnLaunchHasItsPlace) {
  QueuedLaunch outer = running(1, 80, "a", 0), mine = launch(3, 80, {"a", "b"});
  outer.whole = mine.whole = true;
  outer.group = mine.group = "pid:7";
  EXPECT_EQ(decide_start({card("a", 80)}, {outer, launch(2, 10, {"a"})}, mine).wait_for,
            WaitFor::nothing);
  mine.group.clear();
  EXPECT_EQ(decide_start({card("a", 80)}, {outer}, mine).wait_for, WaitFor::room);
}

TEST(WaitQueue, UnknownMemoryIsNotFreeMemory) {
  RoomOfCard room = card("a", 80);
  room.free_bytes.reset();
  EXPECT_EQ(decide_start({room}, {}, launch(9, 1, {"a"})).wait_for, WaitFor::room);
  QueuedLaunch mine = launch(9, 0, {"a"});
  mine.whole = true;
  EXPECT_EQ(decide_start({room}, {}, mine).wait_for, WaitFor::nothing);
}

// --- A simulated machine

struct Job {
  QueuedLaunch ticket;
  std::vector<size_t> cards;
  uint64_t held = 0;  // on each of its cards
  uint64_t seen = 0;  // the same when the quotas' files were read, before the driver was asked
  int rounds = 0;     // left
};

class Machine {
 public:
  explicit Machine(unsigned seed) : random_(seed) {
    for (size_t i = 0; i < 1 + random_() % 4; ++i)
      cards_.push_back(card(std::string(1, static_cast<char>('a' + i)), 80));
  }

  void run() {
    for (int round = 0; round < 400; ++round) {
      if (round < 250 && random_() % 2 == 0) arrive();
      grow_and_end();
      // They look in any order, each with what it saw.
      std::vector<size_t> order(waiting_.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random_);
      std::vector<uint64_t> numbers;
      for (const size_t at : order) numbers.push_back(waiting_[at].ticket.number);
      for (const uint64_t number : numbers) look(number);
      check();
      if (HasFatalFailure()) return;
    }
    EXPECT_TRUE(waiting_.empty()) << waiting_.size() << " never started";
    EXPECT_GT(started_, 20u);
  }

 private:
  static bool HasFatalFailure() { return testing::Test::HasFatalFailure(); }

  void arrive() {
    Job job;
    job.ticket.number = next_++;
    job.ticket.whole = random_() % 10 == 0;
    for (const RoomOfCard& one : cards_)
      if (random_() % 3 != 0) job.ticket.cards.push_back({one.uuid, 80 * k_gib, 0});
    if (job.ticket.cards.empty()) return;
    job.ticket.count = 1 + random_() % job.ticket.cards.size();
    const uint64_t bytes = (1 + random_() % 80) * k_gib;
    if (!job.ticket.whole)
      for (QueuedCard& one : job.ticket.cards) one.bytes = bytes;
    job.rounds = 1 + static_cast<int>(random_() % 6);
    waiting_.push_back(std::move(job));
  }

  void grow_and_end() {
    for (Job& job : running_) {
      const uint64_t limit = job.ticket.cards[0].bytes;
      job.seen = job.held;
      job.held = std::min(limit, job.held + random_() % (limit + 1));
      --job.rounds;
    }
    const auto ended = [](const Job& job) { return job.rounds <= 0; };
    running_.erase(std::remove_if(running_.begin(), running_.end(), ended), running_.end());
    // A kill -9 of somebody, waiting or started.
    if (random_() % 9 == 0 && !running_.empty())
      running_.erase(running_.begin() + static_cast<long>(random_() % running_.size()));
    if (random_() % 9 == 0 && !waiting_.empty())
      waiting_.erase(waiting_.begin() + static_cast<long>(random_() % waiting_.size()));
  }

  std::vector<QueuedLaunch> queue() const {
    std::vector<QueuedLaunch> out;
    for (const Job& job : running_) {
      out.push_back(job.ticket);
      for (QueuedCard& one : out.back().cards) one.used_bytes = job.seen;
    }
    for (const Job& job : waiting_) out.push_back(job.ticket);
    return out;
  }

  std::vector<RoomOfCard> room() const {
    std::vector<RoomOfCard> out = cards_;
    for (const Job& job : running_)
      for (const size_t at : job.cards) {
        *out[at].free_bytes -= job.held;
        out[at].processes += job.held > 0 ? 1 : 0;
        out[at].idle = out[at].idle && job.held == 0;
      }
    return out;
  }

  void look(uint64_t number) {
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const Job& job) { return job.ticket.number == number; });
    ASSERT_NE(at, waiting_.end());
    const WaitDecision decision = decide_start(room(), queue(), at->ticket);
    if (decision.wait_for != WaitFor::nothing) return;
    ASSERT_EQ(decision.cards.size(), at->ticket.count);
    for (const Job& other : waiting_) {
      if (other.ticket.number >= number) continue;
      for (const QueuedCard& one : other.ticket.cards)
        for (const QueuedCard& own : at->ticket.cards)
          ASSERT_NE(one.uuid, own.uuid) << number << " passed " << other.ticket.number;
    }
    Job job = std::move(*at);
    waiting_.erase(at);
    std::vector<QueuedCard> chosen;
    for (const size_t place : decision.cards)
      for (const QueuedCard& one : job.ticket.cards)
        if (one.uuid == cards_[place].uuid) chosen.push_back(one);
    ASSERT_EQ(chosen.size(), job.ticket.count);
    job.ticket.started = true;
    job.ticket.cards = chosen;
    job.cards = decision.cards;
    running_.push_back(std::move(job));
    ++started_;
  }

  void check() const {
    for (size_t i = 0; i < cards_.size(); ++i) {
      uint64_t kept = 0;
      size_t whole = 0, users = 0;
      for (const Job& job : running_)
        for (const QueuedCard& one : job.ticket.cards) {
          if (one.uuid != cards_[i].uuid) continue;
          kept += one.bytes;
          whole += job.ticket.whole ? 1 : 0;
          ++users;
        }
      ASSERT_LE(kept, cards_[i].total_bytes);
      ASSERT_TRUE(whole == 0 || users == 1);
    }
  }

  std::mt19937 random_;
  std::vector<RoomOfCard> cards_;
  std::vector<Job> waiting_, running_;
  uint64_t next_ = 1;
  size_t started_ = 0;
};

TEST(WaitQueue, ADayOfArrivalsEndsAndKills) {
  for (unsigned seed = 0; seed < 200 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Machine(seed).run();
  }
}

}  // namespace wait_queue_test
}  // namespace cufit::resolve
