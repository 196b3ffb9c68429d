// SPDX-License-Identifier: Apache-2.0
// The page as a text. What a browser makes of it is tests/view's business.
#include "report/page/mem_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/format.h"
#include "report/page/page_columns.h"
#include "report/page/page_files.h"
#include "support/pickle_writer.h"

namespace cufit::report {
namespace mem_view_test {

using cufit::testing::dict;
using cufit::testing::list;
using cufit::testing::number;
using cufit::testing::text;

constexpr const char* k_hostile = "</script><script>stolen()</script>\"'<!--";
constexpr int64_t k_mib = 1 << 20;

std::string event(const char* action, int64_t address, int64_t size) {
  const std::string frame =
      dict({{"name", text(k_hostile)}, {"filename", text(k_hostile)}, {"line", number(3)}});
  return dict({{"action", text(action)},
               {"addr", number(address)},
               {"size", number(size)},
               {"stream", number(0)},
               {"time_us", number(17)},
               {"frames", list({frame})}});
}

memory::Snapshot snapshot() {
  const std::string bytes = cufit::testing::pickle(
      dict({{"segments", list({})},
            {"device_traces",
             list({list({event("segment_alloc", 1 << 30, 2 * k_mib), event("alloc", 1 << 30, 600),
                         event("free_requested", 1 << 30, 600),
                         event("free_completed", 1 << 30, 600)})})}}));
  return memory::read_snapshot(std::make_shared<MemorySource>("hostile", bytes)).value();
}

std::string page(const std::string& file, const std::string& lang) {
  const memory::Snapshot rows = snapshot();
  const memory::VerifiedRecording verified =
      memory::verify_recording(rows, 0, std::nullopt).value();
  const analysis::View view = analysis::view_of(rows, verified);
  return mem_view_html({view, rows, knowledge::Knowledge::builtin(), file}, lang);
}

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(MemViewPage, StandsAlone) {
  const std::string html = lower(page("run.pickle", "en"));
  for (const char* forbidden : {"<link", "<img", "<iframe", " src=", " href=", "url(", "@import",
                                "@font-face", "http:", "https:", "fetch(", "xmlhttprequest",
                                "websocket", "innerhtml", "eval(", "document.write"})
    EXPECT_EQ(html.find(forbidden), std::string::npos) << forbidden;
  for (const char* needed : {"<!doctype html>", "default-src 'none'", "prefers-color-scheme: dark",
                             "<html lang=\"en\">", "<noscript>"})
    EXPECT_NE(html.find(needed), std::string::npos) << needed;
  EXPECT_NE(page("run.pickle", "zh").find("<html lang=\"zh-CN\">"), std::string::npos);
}

TEST(MemViewPage, NothingFromOutsideIsMarkup) {
  const std::string html = page(k_hostile, "en");
  EXPECT_EQ(count(html, "</script>"), 5u);  // meta, three chunks, the script
  EXPECT_EQ(count(html, "<script"), 5u);
  EXPECT_EQ(html.find("<!--"), std::string::npos);
  EXPECT_EQ(html.find("stolen()</script>"), std::string::npos);
  EXPECT_EQ(html.find("{{"), std::string::npos);
}

// A place for a part in a name stays a name.
TEST(MemViewPage, FillsEachPartOnce) {
  const std::string html = page("{{script}}", "en");
  EXPECT_NE(html.find("<title>{{script}}"), std::string::npos);
  EXPECT_EQ(count(html, "async function start()"), 1u);
}

// Every text that the script asks for exists, in both languages by the rule of data/messages.
TEST(MemViewPage, ItsTextsExist) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  std::set<std::string> keys;
  for (const char* name :
       {"mem_view.html", "panel.js", "main.js", "state.js", "segments.js", "timeline.js",
        "areas.js", "overview.js", "stacks.js", "pointer.js", "keys.js", "words.js"}) {
    const std::string_view script = page_file(name);
    ASSERT_FALSE(script.empty()) << name;
    for (const char* before : {"Words.say(\"", "data-text=\"", "data-label=\""})
      for (size_t at = script.find(before); at != std::string_view::npos;
           at = script.find(before, at + 1)) {
        const size_t begin = at + std::string_view(before).size();
        const std::string key(script.substr(begin, script.find('"', begin) - begin));
        if (!ends_with(key, ".")) keys.insert(key);  // the rest of the key is a value
      }
  }
  EXPECT_GT(keys.size(), 60u);
  for (const std::string& key : keys)
    EXPECT_FALSE(knowledge.message("view." + key, "zh").empty()) << key;
  const analysis::View view =
      analysis::view_of(snapshot(), memory::verify_recording(snapshot(), 0, std::nullopt).value());
  for (const std::string& kind : view.kinds.keys)
    EXPECT_FALSE(knowledge.message("view.kind." + kind, "zh").empty()) << kind;
}

TEST(ColumnChunk, SaysWhatItHolds) {
  ColumnChunk chunk;
  const std::vector<uint32_t> numbers = {7, 5, 4000000000u};
  chunk.add("n", numbers, ColumnChunk::Values::differences);
  chunk.add_text("t", "ab");
  EXPECT_EQ(chunk.directory().dump(), R"([{"name":"n","type":"u32","count":3,"differences":true},)"
                               R"({"name":"t","type":"text","count":2,"differences":false}])");
}

}  // namespace mem_view_test
}  // namespace cufit::report
