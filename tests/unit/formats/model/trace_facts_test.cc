// SPDX-License-Identifier: Apache-2.0
#include "formats/model/trace_facts.h"

#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace cufit::formats {
namespace trace_facts_test {

test::TraceWriter trace() {
  test::TraceWriter out(8);
  const uint32_t site = out.site("empty", TracePhase::setup, "", "train.py:3");
  out.alloc(4096, site);
  return out;
}

TEST(TraceFacts, AreReadBackFromTheFile) {
  test::TraceWriter file = trace();
  for (int i = 0; i < 150; ++i) file.text("text " + std::to_string(i));  // numbers of two bytes
  file.end(TraceEnd::script_ended);
  TraceEvents events = file.read();
  const std::string value(200, 'v');  // a length of two bytes
  const Result<std::string> bytes = with_fact(file.bytes(), events, "batch", value);
  ASSERT_TRUE(bytes);
  const Result<TraceEvents> again = test::read_trace(*bytes);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->fact("batch"), value);
  EXPECT_EQ(again->end, TraceEnd::script_ended);
  EXPECT_TRUE(again->complete);

  // The same as in the events that were read.
  EXPECT_EQ(events.fact("batch"), "8");
  add_fact(events, "batch", value);
  EXPECT_EQ(events.fact("batch"), value);
  EXPECT_EQ(events.texts, again->texts);
  EXPECT_EQ(events.facts.size(), again->facts.size());
  EXPECT_EQ(events.facts.back().key, again->facts.back().key);
  EXPECT_EQ(events.storage_count(), again->storage_count());
}

TEST(TraceFacts, OfAFileThatWasCutOffAreRefused) {
  const test::TraceWriter file = trace();
  const Result<std::string> bytes = with_fact(file.bytes(), file.read(), "batch", "16");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::malformed);
}

}  // namespace trace_facts_test
}  // namespace cufit::formats
