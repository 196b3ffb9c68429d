// SPDX-License-Identifier: Apache-2.0
#include "formats/model/trace_events.h"

#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace cufit::formats {
namespace trace_events_test {

using test::read_trace;
using test::TraceWriter;

TraceWriter small_trace() {
  TraceWriter out(8);
  const uint32_t weight = out.site("empty", TracePhase::setup, "", "train.py:3");
  const uint32_t linear = out.site("matmul", TracePhase::forward, "layer.1", "train.py:57", 15);
  const uint32_t a = out.alloc(4096, weight);
  out.category(a, StorageCategory::buffer);
  out.category(a, StorageCategory::parameter);
  out.mark(TraceMark::step_begins);
  out.call(linear, {32, 0, 1, 8, 1024, uint64_t{1} << 63});
  const uint32_t b = out.alloc(0, linear);
  const uint32_t c = out.alloc(uint64_t{5} << 30, linear);
  out.free(b);
  out.free(c);
  out.mark(TraceMark::step_ends);
  out.note("data_dependent", "aten::item", "train.py:60");
  out.convolution(90, 2, {16, 0, 64}, {{8, 4096, 0, 6, 3, 1, 65}, {16, 8192, 9000, 0, 0, 0, 40}});
  out.end(TraceEnd::script_ended);
  return out;
}

std::string message(const std::string& bytes, const TraceLimits& limits = {}) {
  const Result<TraceEvents> got = read_trace(bytes, limits);
  return got ? "read" : got.error().what;
}

TEST(TraceEvents, ReadsEveryKindOfRecord) {
  const TraceEvents got = small_trace().read();
  EXPECT_TRUE(got.complete);
  EXPECT_EQ(got.end, TraceEnd::script_ended);
  EXPECT_EQ(got.fact("batch"), "8");
  EXPECT_EQ(got.fact("seq"), "");
  ASSERT_EQ(got.sites.size(), 2u);
  EXPECT_EQ(got.texts[got.sites[1].module], "layer.1");
  EXPECT_EQ(got.texts[got.sites[1].source], "train.py:57");
  EXPECT_EQ(got.sites[0].stream, 0);
  EXPECT_EQ(got.sites[1].phase, TracePhase::forward);
  EXPECT_EQ(got.sites[1].stream, 15);
  ASSERT_EQ(got.storage_count(), 3u);
  EXPECT_EQ(got.categories[0], StorageCategory::parameter);
  EXPECT_EQ(got.categories[1], StorageCategory::unknown);
  ASSERT_EQ(got.events.size(), 8u);
  EXPECT_EQ(got.events[0].bytes, 4096u);
  EXPECT_EQ(got.events[2].kind, TraceEventKind::call);
  EXPECT_EQ(got.numbers_of(got.calls[0]).back(), uint64_t{1} << 63);
  EXPECT_EQ(got.events[4].bytes, uint64_t{5} << 30);
  EXPECT_EQ(got.events[5].kind, TraceEventKind::free);
  EXPECT_EQ(got.events[5].index, 1u);
  EXPECT_EQ(got.events[6].index, 2u);
  ASSERT_EQ(got.notes.size(), 1u);
  EXPECT_EQ(got.texts[got.notes[0].detail], "aten::item");
  ASSERT_EQ(got.convolutions.size(), 1u);
  EXPECT_EQ(got.convolutions[0].capability, 90u);
  EXPECT_EQ(got.convolutions[0].pass, 2u);
  EXPECT_EQ(got.numbers[got.convolutions[0].first + 2], 64u);
  ASSERT_EQ(got.workspaces.size(), 2u);
  EXPECT_EQ(got.workspaces[0].bytes, 4096u);
  EXPECT_TRUE(got.workspaces[0].divides);
  EXPECT_EQ(got.workspaces[0].engine, 65u);
  EXPECT_EQ(got.workspaces[1].most, 9000u);
  EXPECT_FALSE(got.workspaces[1].divides);
}

TEST(TraceEvents, RefusesWhatNoCudnnSays) {
  const auto with = [](uint64_t pass, std::vector<uint64_t> row) {
    TraceWriter out(8);
    out.convolution(90, pass, {16, 0}, {std::move(row)});
    return out.bytes();
  };
  EXPECT_TRUE(read_trace(with(1, {8, 1, 0, 1, 1, 1, 0})));
  for (const std::string& wrong :
       {with(3, {8, 1, 0, 1, 1, 1, 0}), with(1, {uint64_t{1} << 50, 1, 0, 1, 1, 1, 0}),
        with(1, {8, uint64_t{1} << 60, 0, 1, 1, 1, 0}), with(1, {8, 1, 0, 5000, 1, 1, 0}),
        with(1, {8, 1, 0, 1, 1, 2, 0})})
    EXPECT_NE(message(wrong), "read");
  TraceLimits few;
  few.rows = 1;
  TraceWriter out(8);
  out.convolution(90, 0, {16, 0}, {{8, 1, 0, 0, 0, 0, 0}, {16, 1, 0, 0, 0, 0, 0}});
  EXPECT_NE(message(out.bytes(), few), "read");
}

TEST(TraceEvents, FreesSideBySideAreInOneOrder) {
  const auto freed = [](const std::vector<uint32_t>& order) {
    TraceWriter out(8);
    const uint32_t site = out.site("_to_copy", TracePhase::forward);
    for (int i = 0; i < 4; ++i) out.alloc(512, site);
    out.free(order[0]);
    out.mark(TraceMark::step_begins);
    for (size_t i = 1; i < order.size(); ++i) out.free(order[i]);
    out.end(TraceEnd::steps_seen);
    std::vector<uint32_t> got;
    for (const TraceEvent& event : out.read().events)
      if (event.kind == TraceEventKind::free) got.push_back(event.index);
    return got;
  };
  const std::vector<uint32_t> ordered{3, 0, 1, 2};
  EXPECT_EQ(freed({3, 2, 0, 1}), ordered);
  EXPECT_EQ(freed({3, 1, 2, 0}), ordered);
}

TEST(TraceEvents, LaterFactsReplaceEarlierOnes) {
  TraceWriter out(8);
  out.fact("batch", "16");
  EXPECT_EQ(out.read().fact("batch"), "16");
}

// A run that was killed leaves such a file.
TEST(TraceEvents, CutOffAnywhereGivesWhatStandsBefore) {
  const std::string whole = small_trace().bytes();
  size_t events = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<TraceEvents> got = read_trace(whole.substr(0, size));
    ASSERT_TRUE(got) << size << ": " << got.error().what;
    EXPECT_FALSE(got->complete) << size;
    EXPECT_EQ(got->end, TraceEnd::cut_off);
    EXPECT_GE(got->events.size(), events);
    events = got->events.size();
    size_t numbers = 0;
    for (const TraceCall& call : got->calls) numbers += call.count;
    for (const TraceConvolution& said : got->convolutions) numbers += said.count;
    EXPECT_EQ(got->numbers.size(), numbers) << "numbers of a call that was cut off";
  }
  EXPECT_EQ(events, 8u);
}

TEST(TraceEvents, NamesTheByteOfWhatIsWrong) {
  EXPECT_EQ(message("PK\x03\x04"),
            "trace: no event file of cufit fit, or damaged: it does not begin with CUFITEV1 at "
            "byte 0");
  const std::string good = TraceWriter(8).bytes();
  const std::string at = " at byte " + std::to_string(good.size());
  const auto wrong = [&](std::string_view bytes) {
    const std::string text = message(good + std::string(bytes));
    return text.substr(text.find("damaged"));
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(wrong("\x0b"), "damaged: a record of the unknown kind 11" + at);
  EXPECT_EQ(wrong("\x00"sv), "damaged: a record of the unknown kind 0" + at);
  EXPECT_EQ(wrong("\x02\x02"), "damaged: text 2 of 2" + at);
  EXPECT_EQ(wrong("\x02\x00\x00\x00\x06"sv), "damaged: phase 6" + at);
  EXPECT_EQ(wrong("\x03\x01\x00"sv), "damaged: site 0 of 0" + at);
  EXPECT_EQ(wrong("\x04\x00"sv), "damaged: a distance of storages: 0 of 0" + at);
  EXPECT_EQ(wrong("\x05\x04"), "damaged: mark 4" + at);
  EXPECT_EQ(wrong("\x0a\x03"), "damaged: end 3" + at);
}

TEST(TraceEvents, RefusesNumbersOfMoreThan64Bit) {
  const std::string good = TraceWriter(8).bytes();
  const std::string ones(9, '\xff');
  EXPECT_NE(message(good + "\x01" + ones + "\x02").find("64 bit"), std::string::npos);
  EXPECT_NE(message(good + "\x01" + ones + "\x81").find("64 bit"), std::string::npos);
  EXPECT_NE(message(good + "\x01" + std::string(10, '\x80')).find("64 bit"), std::string::npos);
  EXPECT_NE(message(good + "\x01" + ones + "\x01").find("a text of 18446744073709551615 bytes"),
            std::string::npos);
}

TEST(TraceEvents, RefusesStoragesThatCannotBe) {
  TraceWriter out(8);
  const uint32_t site = out.site("empty", TracePhase::setup);
  const uint32_t storage = out.alloc(512, site);
  TraceWriter twice = out;
  twice.free(storage);
  twice.free(storage);
  EXPECT_NE(message(twice.bytes()).find("storage 0 after its end"), std::string::npos);
  TraceWriter late = out;
  late.free(storage);
  late.category(storage, StorageCategory::input);
  EXPECT_NE(message(late.bytes()).find("storage 0 after its end"), std::string::npos);
  TraceWriter no_category = out;
  no_category.category(storage, StorageCategory::unknown);
  EXPECT_NE(message(no_category.bytes()).find("category 0"), std::string::npos);
  TraceWriter huge = out;
  huge.alloc((uint64_t{1} << 56) - 511, site);
  EXPECT_NE(message(huge.bytes()).find("a storage of"), std::string::npos);
  TraceWriter most = out;
  most.free(storage);
  most.alloc(uint64_t{1} << 56, site);
  EXPECT_EQ(message(most.bytes()), "read");
}

TEST(TraceEvents, ObeysItsLimits) {
  const std::string bytes = small_trace().bytes();
  EXPECT_EQ(message(bytes), "read");
  TraceLimits events{.events = 7}, rows{.rows = 1}, numbers{.numbers = 5}, call{.call_numbers = 5};
  TraceLimits text{.text_bytes = 9}, texts{.all_text_bytes = 20};
  TraceLimits notes{.notes = 0};
  for (const TraceLimits& limits : {events, rows, notes, numbers, call, text, texts})
    EXPECT_NE(message(bytes, limits), "read");
}

TEST(TraceEvents, RefusesWhatFollowsTheEnd) {
  EXPECT_NE(message(small_trace().bytes() + "x").find("something after the end"),
            std::string::npos);
}

}  // namespace trace_events_test
}  // namespace cufit::formats
