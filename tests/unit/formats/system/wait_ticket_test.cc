// SPDX-License-Identifier: Apache-2.0
#include "formats/system/wait_ticket.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace wait_ticket_test {

WaitTicket ticket() {
  WaitTicket out;
  out.number = 81500000000;
  out.pid = 4711;
  out.start_ticks = 99887;
  out.boot = "0d1e2f00-1111-2222-3333-444444444444";
  out.pid_namespace = 4026531836;
  out.share = "team";
  out.domain = "/dev/shm/cufit-1000/share-team.domain";
  out.count = 2;
  out.cards = {{"GPU-0", 10}, {"MIG-GPU-0/7/0", UINT64_MAX}};
  return out;
}

std::string text_of(const WaitTicket& one) { return make_wait_ticket(one).value(); }

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(WaitTicket, IsReadAsItWasWritten) {
  WaitTicket wanted = ticket();
  wanted.started = true;
  wanted.whole = true;
  const WaitTicket read = parse_wait_ticket(text_of(wanted)).value();
  EXPECT_EQ(read.number, wanted.number);
  EXPECT_TRUE(read.started);
  EXPECT_EQ(read.pid, 4711u);
  EXPECT_EQ(read.start_ticks, 99887u);
  EXPECT_EQ(read.boot, wanted.boot);
  EXPECT_EQ(read.pid_namespace, 4026531836u);
  EXPECT_EQ(read.share, "team");
  EXPECT_EQ(read.domain, wanted.domain);
  EXPECT_EQ(read.count, 2u);
  EXPECT_TRUE(read.whole);
  ASSERT_EQ(read.cards.size(), 2u);
  EXPECT_EQ(read.cards[1].uuid, "MIG-GPU-0/7/0");
  EXPECT_EQ(read.cards[1].bytes, UINT64_MAX);
}

// On a full file system the state changes in the room that the file has.
TEST(WaitTicket, HasOneSize) {
  WaitTicket one = ticket();
  EXPECT_EQ(text_of(one).size(), k_ticket_bytes);
  one.cards.clear();
  for (size_t i = 0; i < k_most_ticket_cards; ++i)
    one.cards.push_back({std::string(60, 'x') + std::to_string(1000 + i), UINT64_MAX});
  one.domain = "/" + std::string(1023, 'd');
  EXPECT_EQ(text_of(one).size(), k_ticket_bytes);
}

TEST(WaitTicket, WhatCannotBeReadIsNotWritten) {
  WaitTicket one = ticket();
  one.domain = "/tmp/a\nnumber 1";
  EXPECT_FALSE(make_wait_ticket(one));
  one = ticket();
  one.share = "a b";
  EXPECT_FALSE(make_wait_ticket(one));
  one = ticket();
  one.cards.resize(1);  // and two are needed
  EXPECT_FALSE(make_wait_ticket(one));
}

TEST(WaitTicket, HostileTextsAreRefused) {
  const std::string good = text_of(ticket());
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"cufit-wait 1", "cufit-wait 2"},
           {"number 81500000000", "number -1"},
           {"number 81500000000", "number 99999999999999999999999"},
           {"number 81500000000", "number 0"},
           {"state waiting", "state first"},
           {"pid 4711", "pid 4294967296"},
           {"pid 4711", "pid 0"},
           {"share team", "share ../../etc"},
           {"count 2", "count 3"},
           {"count 2", "count 0"},
           {"count 2", "count 4000000000"},
           {"whole 0", "whole 2"},
           {"card GPU-0 10", "card GPU-0"},
           {"card GPU-0 10", "card \x1b[31m 10"},
           {"card GPU-0 10", "card MIG-GPU-0/7/0 10"},  // twice
           {"card GPU-0 10", "what GPU-0 10"},
           {"\nend\n", "\n\nend\n"}})
    EXPECT_FALSE(parse_wait_ticket(with(good, from, to))) << to;
  EXPECT_FALSE(parse_wait_ticket(""));
  EXPECT_FALSE(parse_wait_ticket(good + "\n"));
  EXPECT_FALSE(parse_wait_ticket(std::string(k_ticket_bytes, '\0')));
  // Cut anywhere before its end.
  for (size_t size = 0; size < good.find("\nend\n") + 4; ++size)
    EXPECT_FALSE(parse_wait_ticket(good.substr(0, size))) << size;
}

TEST(WaitTicket, AnErrorNamesTheLine) {
  EXPECT_EQ(parse_wait_ticket(with(text_of(ticket()), "state waiting", "state x")).error().what,
            "line 3 is none of a ticket's");
}

}  // namespace wait_ticket_test
}  // namespace cufit::formats
