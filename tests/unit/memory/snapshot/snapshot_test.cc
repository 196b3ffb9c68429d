// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot/snapshot.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "support/pickle_writer.h"
#include "support/places.h"

namespace cufit::memory {
namespace snapshot_test {

using namespace cufit::testing;

Result<Snapshot> read(const std::string& bytes) {
  return read_snapshot(std::make_shared<MemorySource>("s.pkl", bytes));
}
std::string error_of(const std::string& bytes) {
  Result<Snapshot> snapshot = read(bytes);
  return snapshot ? "no error" : snapshot.error().what;
}

std::string frame(std::string_view name, int64_t line, std::string_view file = "train.py") {
  return dict({{"name", text(name)}, {"filename", text(file)}, {"line", number(line)}});
}
// An entry as torch 2.11 writes it.
std::string entry(std::string_view action, int64_t address, int64_t size, const Pairs& more = {}) {
  Pairs pairs = {{"action", text(action)},
                 {action == "oom" ? "device_free" : "addr", number(address)},
                 {"size", number(size)},
                 {"stream", number(0)},
                 {"time_us", number(1000 + size)}};
  pairs.insert(pairs.end(), more.begin(), more.end());
  return dict(pairs);
}
std::string block(int64_t address, int64_t size, std::string_view state, const Pairs& more = {}) {
  Pairs pairs = {{"address", number(address)},
                 {"size", number(size)},
                 {"requested_size", number(size - 12)},
                 {"state", text(state)}};
  pairs.insert(pairs.end(), more.begin(), more.end());
  return dict(pairs);
}
std::string segment(int64_t address, int64_t size, const std::vector<std::string>& blocks) {
  return dict({{"device", number(1)},
               {"address", number(address)},
               {"total_size", number(size)},
               {"allocated_size", number(512)},
               {"active_size", number(1024)},
               {"requested_size", number(500)},
               {"stream", number(-4096)},
               {"segment_type", text("small")},
               {"segment_pool_id", pair(0, 3)},
               {"is_expandable", boolean(true)},
               {"frames", list({})},
               {"blocks", list(blocks)}});
}
std::string snapshot(const std::vector<std::string>& segments,
                     const std::vector<std::string>& traces, const Pairs& more = {}) {
  Pairs pairs = {{"segments", list(segments)}, {"device_traces", list(traces)}};
  pairs.insert(pairs.end(), more.begin(), more.end());
  return pickle(dict(pairs));
}

TEST(Snapshot, ReadsSegmentsAndBlocks) {
  auto got = read(snapshot(
      {segment(0x2000, 2048,
               {block(0x2000, 512, "active_allocated",
                      {{"frames", list({frame("f", 3), frame("g", 9)})}}),
                block(0x2200, 512, "active_pending_free"), block(0x2400, 1024, "inactive")}),
       segment(0x1000, 512, {})},
      {}));
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_EQ(got->segments.size(), 2u);
  EXPECT_EQ(got->segments[0].address, 0x1000u);  // sorted
  const Segment& s = got->segments[1];
  EXPECT_EQ(s.device, 1u);
  EXPECT_EQ(s.total_size, 2048u);
  EXPECT_EQ(s.allocated_size, 512u);
  EXPECT_EQ(s.active_size, 1024u);
  EXPECT_EQ(s.requested_size, 500u);
  EXPECT_EQ(s.stream, static_cast<uint64_t>(-4096));
  EXPECT_EQ(s.pool, (PoolId{0, 3}));
  EXPECT_TRUE(s.is_small);
  EXPECT_TRUE(s.is_expandable);
  EXPECT_EQ(s.stack, k_empty_stack);
  ASSERT_EQ(s.blocks.size(), 3u);
  EXPECT_EQ(s.blocks[1].address, 0x2200u);
  EXPECT_EQ(s.blocks[1].requested_size, 500u);
  EXPECT_EQ(s.blocks[1].state, BlockState::active_pending_free);
  EXPECT_EQ(s.blocks[2].state, BlockState::inactive);
  EXPECT_EQ(s.blocks[2].stack, k_no_stack);
  auto stack = got->stacks[s.blocks[0].stack];
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(got->text(got->stacks.frame(stack[1]).name), "g");
  EXPECT_EQ(got->text(got->stacks.frame(stack[1]).filename), "train.py");
  EXPECT_EQ(got->stacks.frame(stack[1]).line, 9u);
}

// As torch's own default, stacks="all", mixes them.
TEST(Snapshot, TellsPythonFramesFromThoseOfCpp) {
  const std::string mixed = list(
      {frame("torch::unwind::unwind()", 0, "??"), frame("malloc", 12, "CUDACachingAllocator.cpp"),
       frame("reset_", 0, ""), frame("f", 3), frame("eval", 0, "/usr/lib/libpython3.12.so.1.0"),
       frame("g", 9, "<string>"), frame("_start", 0, "/lib/libc.so"), frame("h", 5, "kernel.cu"),
       frame("_PyEval_EvalFrameDefault", 0, "/opt/conda/bin/python3.12"),
       frame("main", 1, "/home/u/x.sort.py"), frame("k", 2, "/home/u/python3.py")});
  const std::string native = list({frame("unwind", 0, "??"), frame("start", 0, "Engine.h")});
  const std::string python = list({frame("f", 3), frame("g", 9, "<string>")});
  auto got = read(snapshot({}, {list({entry("alloc", 0x7000, 100, {{"frames", mixed}}),
                                      entry("alloc", 0x8000, 100, {{"frames", native}}),
                                      entry("alloc", 0x9000, 100, {{"frames", python}})})}));
  ASSERT_TRUE(got) << got.error().what;
  std::vector<std::string> names;
  for (const uint32_t number : got->python_frames(got->events[0].stack))
    names.emplace_back(got->text(got->stacks.frame(number).name));
  EXPECT_EQ(names, (std::vector<std::string>{"f", "g", "main", "k"}));
  EXPECT_EQ(got->stacks[got->events[0].stack].size(), 11u);  // the page shows them all
  EXPECT_EQ(got->python_stack(got->events[1].stack), k_empty_stack);
  EXPECT_EQ(got->python_stack(got->events[2].stack), got->events[2].stack);
}

TEST(Snapshot, ReadsTracesPerDevice) {
  std::string first = entry("segment_alloc", 0x7000, 2097152);
  std::string second = entry("alloc", 0x7000, 100,
                             {{"frames", list({frame("f", 3)})},
                              {"compile_context", text("N/A")},
                              {"user_metadata", text("epoch 3")},
                              {"pool_id", pair(2, 0)}});
  std::string oom = entry("oom", 104388231168, 2029578752);
  std::string later = entry("defragment", 1, 2);
  std::string bare = dict({{"action", text("free_completed")},
                           {"addr", number(0x7000)},
                           {"size", number(100)},
                           {"stream", number(7)}});
  auto got = read(snapshot({}, {list({first, second, oom}), list({}), list({later, bare})}));
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_EQ(got->traces.size(), 3u);
  EXPECT_EQ(got->traces[0].count, 3u);
  EXPECT_EQ(got->traces[1].count, 0u);
  EXPECT_EQ(got->traces[2].first, 3u);
  const TraceEvent& alloc = got->events[1];
  EXPECT_EQ(got->events[0].action, Action::segment_alloc);
  EXPECT_EQ(got->events[0].stack, k_no_stack);
  EXPECT_FALSE(got->context(got->events[0]).pool);
  EXPECT_EQ(alloc.action, Action::alloc);
  EXPECT_EQ(alloc.address, 0x7000u);
  EXPECT_EQ(alloc.size, 100u);
  EXPECT_EQ(alloc.time_us, 1100u);
  EXPECT_EQ(got->stacks[alloc.stack].size(), 1u);
  EXPECT_EQ(got->context(alloc).pool, (PoolId{2, 0}));
  EXPECT_EQ(got->text(got->context(alloc).user_metadata), "epoch 3");
  EXPECT_EQ(got->events[2].action, Action::oom);
  EXPECT_EQ(got->events[2].address, 104388231168u);  // device_free
  EXPECT_EQ(got->events[2].size, 2029578752u);       // rounded
  EXPECT_EQ(got->events[3].action, Action::other);
  EXPECT_EQ(got->text(got->context(got->events[3]).action_name), "defragment");
  EXPECT_EQ(got->events[4].time_us, k_absent);
  EXPECT_EQ(got->context(got->events[4]).stream, 7u);
  EXPECT_EQ(got->contexts.size(), 4u);  // the default, and one for each that differs from it
}

TEST(Snapshot, ReadsSettingsAndAnnotations) {
  auto got = read(snapshot(
      {}, {},
      {{"allocator_settings",
        dict({{"PYTORCH_CUDA_ALLOC_CONF", text("expandable_segments:True")},
              {"max_split_size", number(-1)},
              {"garbage_collection_threshold", std::string("G\x3f\xe9\x99\x99\x99\x99\x99\x9a")},
              {"expandable_segments", boolean(true)},
              {"pinned_num_register_threads", number(4)},
              {"roundup_power2_divisions", dict({{"1", number(0)}, {"64", number(8)}})}})},
       {"external_annotations", list({dict({{"stage", text("START")},
                                            {"name", text("Optimizer.step#AdamW.step")},
                                            {"device", number(0)},
                                            {"time_us", number(77)}})})},
       {"written_by_a_later_version", number(1)}}));
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_TRUE(got->settings);
  EXPECT_EQ(got->settings->conf, "expandable_segments:True");
  EXPECT_EQ(got->settings->max_split_size, k_absent);
  EXPECT_EQ(got->settings->garbage_collection_threshold, 0.8);
  EXPECT_EQ(got->settings->expandable_segments, true);
  EXPECT_FALSE(got->settings->release_lock_on_cudamalloc);
  ASSERT_EQ(got->settings->roundup_power2_divisions.size(), 2u);
  EXPECT_EQ(got->settings->roundup_power2_divisions[1].second, 8u);
  ASSERT_EQ(got->settings->rest.size(), 1u);
  EXPECT_EQ(got->settings->rest[0].second, "4");
  ASSERT_EQ(got->annotations.size(), 1u);
  EXPECT_TRUE(got->annotations[0].start);
  EXPECT_EQ(got->text(got->annotations[0].name), "Optimizer.step#AdamW.step");
  ASSERT_EQ(got->unknown_keys.size(), 1u);
  EXPECT_EQ(got->text(got->unknown_keys[0]), "written_by_a_later_version");
}

// 2.0: no addresses on blocks, `history` instead of requested_size and frames.
TEST(Snapshot, ReadsTheFormOfTorch20) {
  std::string newest = dict(
      {{"addr", number(0x5000)}, {"real_size", number(400)}, {"frames", list({frame("f", 1)})}});
  std::string older = dict({{"addr", number(0x5000)}, {"real_size", number(30)}});
  std::string old_segment =
      dict({{"device", number(0)},
            {"address", number(0x5000)},
            {"total_size", number(1536)},
            {"stream", number(0)},
            {"segment_type", text("large")},
            {"blocks", list({dict({{"size", number(512)},
                                   {"state", text("active_allocated")},
                                   {"history", list({newest, older})}}),
                             dict({{"size", number(1024)}, {"state", text("inactive")}})})}});
  for (bool bare : {false, true}) {
    auto got = read(bare ? pickle(list({old_segment})) : snapshot({old_segment}, {}));
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(got->only_segments, bare);
    ASSERT_EQ(got->segments.size(), 1u);
    const std::vector<Block>& blocks = got->segments[0].blocks;
    ASSERT_EQ(blocks.size(), 2u);
    EXPECT_EQ(blocks[0].address, 0x5000u);
    EXPECT_EQ(blocks[0].requested_size, 400u);
    EXPECT_EQ(got->stacks[blocks[0].stack].size(), 1u);
    EXPECT_EQ(blocks[1].address, 0x5200u);
    EXPECT_EQ(blocks[1].requested_size, k_absent);
    EXPECT_EQ(got->segments[0].requested_size, k_absent);
    EXPECT_FALSE(got->segments[0].pool);
    EXPECT_FALSE(got->settings);
  }
}

TEST(Snapshot, ReadsHostMemoryOfTorch214) {
  auto got = read(snapshot({segment(0x9000, 512, {})}, {list({entry("alloc", 1, 2)})},
                           {{"host_segments", list({segment(0x100, 4096, {})})},
                            {"host_traces", list({list({entry("alloc", 5, 6)})})}}));
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_EQ(got->host_segments.size(), 1u);
  EXPECT_EQ(got->host_segments[0].total_size, 4096u);
  ASSERT_EQ(got->host_traces.size(), 1u);
  EXPECT_EQ(got->events[got->host_traces[0].first].address, 5u);
}

// A trace whose entries do not lie side by side is put together.
TEST(Snapshot, AnEntryMayStandInTwoTraces) {
  std::string shared = entry("alloc", 1, 2) + std::string("q\x09", 2);
  std::string bytes = snapshot({}, {list({shared, entry("alloc", 3, 4)}),
                                    list({entry("alloc", 5, 6), std::string("h\x09", 2)})});
  auto got = read(bytes);
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_EQ(got->traces.size(), 2u);
  ASSERT_EQ(got->traces[1].count, 2u);
  EXPECT_EQ(got->events[got->traces[1].first].address, 5u);
  EXPECT_EQ(got->events[got->traces[1].first + 1].address, 1u);
}

// The first 24 bytes of an image, and a pickle of None that was compressed twice.
const std::string k_gzipped_png(
    "\037\213\010\000\000\000\000\000\002\003\353\014\360\163\347\345\222\342\142"
    "\100\003\000\126\066\134\340\030\000\000\000",
    30);
const std::string k_gzipped_gzip(
    "\037\213\010\000\000\000\000\000\002\003\223\357\346\140\000\001\046\346\317\227"
    "\231\031\166\327\176\375\314\004\344\001\000\355\223\034\330\026\000\000\000",
    39);

TEST(Snapshot, SaysWhatItFoundInstead) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "s.pkl: the file is empty"},
      {std::string("PK\x03\x04 and so on"), "found a zip archive"},
      {"<!DOCTYPE html>", "found an HTML page"},
      {"\x89PNG\r\n\x1a\n", "found an image (PNG)"},
      {"\xff\xd8\xff\xe0", "found an image (JPEG)"},
      {"%PDF-1.7", "found a PDF file"},
      {k_gzipped_png, "found an image (PNG)"},
      {k_gzipped_gzip, "found a gzip file inside another compressed file"},
      {"{\"segments\": []}", "found JSON"},
      {"Memory snapshots of real runs", "expected a pickle, found a text"},
      {pickle(number(3)),
       "expected a dict with `segments` and `device_traces` "
       "(torch.cuda.memory._dump_snapshot), found the number 3"},
      {pickle(list({number(3), number(4), number(5)})), "found a list of 3 other values"},
      {pickle(dict({{"epoch", number(3)}, {"loss", number(4)}})),
       "found a dict of 2 keys (`epoch`, `loss`)"},
      {pickle(list({list({entry("alloc", 1, 2)})})), "found a list of 1 lists"},
      {pickle(entry("alloc", 1, 2)), "found a trace entry"},
      {pickle(text("hi")), "found the text `hi`"},
      {std::string("\x80\x02") + "ctorch._utils\n_rebuild_tensor_v2\n",
       "s.pkl: the pickle holds more than plain data: refused opcode GLOBAL at byte 2"},
      {snapshot({}, {entry("alloc", 1, 2)}), "`device_traces` is a list of 1 trace entries"},
      {snapshot({}, {list({segment(1, 2, {})})}), "the trace of device 0 is a list of 1 segments"},
      {snapshot({number(1), number(2), number(3)}, {}), "`segments` is a list of 3 other values"},
      {snapshot({dict({{"total_size", number(1)}})}, {}), "segment 0 has no address"},
      {snapshot({}, {list({dict({{"action", text("alloc")}, {"addr", number(1)}})})}),
       "a trace entry `alloc` has no size at byte"},
      {snapshot({}, {list({dict({{"action", text("oom")}})})}), "a trace entry `oom` has no size"},
      {snapshot({}, {list({dict({{"action", text("alloc")},
                                 {"addr", std::string("\x8a\x09\0\0\0\0\0\0\0\0\x01", 11)}})})}),
       "`addr` of a trace entry is a number of more than 64 bits at byte"},
      {snapshot({}, {list({entry("alloc", -1, 2)})}),
       "`addr` of a trace entry is the number -1 at byte"},
      {snapshot({}, {list({dict({{"action", number(1)}})})}), "an `action` that is no text"},
      {snapshot({segment(1, 2, {block(1, 512, "sleeping")})}, {}),
       "`state` of a block is the text `sleeping`"},
  };
  for (const auto& [bytes, want] : cases) {
    std::string got = error_of(bytes);
    EXPECT_NE(got.find(want), std::string::npos) << got << "\n" << want;
  }
}

// Short opcodes shall not fill the memory: what rows take is paid for by bytes of the file.
TEST(Snapshot, RefusesRowsOutOfProportion) {
  std::string tiny = std::string("}h\x01Ns", 5);  // a dict with one key, 5 bytes for 16 and more
  std::string bytes = "\x80\x02" + text("key") +
                      std::string(
                          "q\x01"
                          "0",
                          3) +
                      "](";
  for (int i = 0; i < 3'000'000; ++i) bytes += tiny;
  EXPECT_NE(error_of(bytes + "e.").find("more than a file of its size can hold"),
            std::string::npos);
}

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

struct Figures {
  const char* file;
  size_t segments, blocks, entries, allocs, frees, segment_allocs, ooms, stacks, frames,
      annotations;
  uint64_t reserved, allocated;
};

// Made by tools/compare-snapshots, which takes them from Python's pickle.load.
constexpr Figures k_files[] = {
    {"trace-resnet.pkl.gz", 105, 586, 17215, 6028, 5541, 105, 0, 1, 0, 32, 5360320512, 303110656},
    {"trace-varlen.pkl.gz", 236, 689, 96643, 32435, 31986, 236, 0, 1, 0, 120, 19872612352,
     1566678528},
    {"trace-gpt2-stacks.pkl.gz", 131, 581, 10078, 3615, 3166, 131, 0, 45, 78, 12, 5425332224,
     1563824640},
    {"oom-varlen.pkl.gz", 226, 901, 4433, 1860, 1164, 235, 1, 46, 79, 4, 17622368256, 15036755456},
};

void expect_figures(const std::filesystem::path& path, const Figures& want) {
  auto got = read(whole_file(path));
  ASSERT_TRUE(got) << path << got.error().what;
  size_t actions[11] = {};
  for (size_t i = 0; i < got->traces.at(0).count; ++i) {
    ++actions[static_cast<size_t>(got->events[got->traces[0].first + i].action)];
  }
  uint64_t reserved = 0, allocated = 0;
  size_t blocks = 0;
  for (const Segment& s : got->segments) {
    reserved += s.total_size;
    allocated += s.allocated_size;
    blocks += s.blocks.size();
    uint64_t end = s.address;
    for (const Block& b : s.blocks) {
      EXPECT_EQ(b.address, end);
      end += b.size;
    }
    EXPECT_EQ(end, s.address + s.total_size);
  }
  EXPECT_EQ(got->segments.size(), want.segments);
  EXPECT_EQ(blocks, want.blocks);
  EXPECT_EQ(got->traces[0].count, want.entries);
  EXPECT_EQ(actions[static_cast<size_t>(Action::alloc)], want.allocs);
  EXPECT_EQ(actions[static_cast<size_t>(Action::free_requested)], want.frees);
  EXPECT_EQ(actions[static_cast<size_t>(Action::free_completed)], want.frees);
  EXPECT_EQ(actions[static_cast<size_t>(Action::segment_alloc)], want.segment_allocs);
  EXPECT_EQ(actions[static_cast<size_t>(Action::oom)], want.ooms);
  EXPECT_EQ(got->stacks.size(), want.stacks);
  EXPECT_EQ(got->stacks.frame_count(), want.frames);
  EXPECT_EQ(got->annotations.size(), want.annotations);
  EXPECT_EQ(reserved, want.reserved);
  EXPECT_EQ(allocated, want.allocated);
  EXPECT_EQ(got->compression, formats::Compression::gzip);
  EXPECT_EQ(got->pickle_protocol, 4u);
  ASSERT_TRUE(got->settings);
  EXPECT_EQ(got->settings->conf, "");
  EXPECT_TRUE(got->unknown_keys.empty());
}

TEST(Snapshot, ReadsRealTraces) {
  for (const Figures& want : k_files) {
    expect_figures(std::filesystem::path(cufit::test::source_dir()) / "tests/traces" / want.file,
                   want);
  }
}

TEST(Snapshot, ReadsTheTracesBesideTheCheckout) {
  std::filesystem::path folder = std::filesystem::path(cufit::test::source_dir()) / "../shared/gpu";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/gpu: only tests/traces read";
  for (const Figures& want : k_files) expect_figures(folder / want.file, want);
}

TEST(Snapshot, ARealTraceCutOffAnywhereIsAnError) {
  std::string bytes = whole_file(std::filesystem::path(cufit::test::source_dir()) /
                                 "tests/traces/oom-varlen.pkl.gz");
  for (size_t size = 10; size < bytes.size(); size += bytes.size() / 40) {
    EXPECT_NE(error_of(bytes.substr(0, size)).find("damaged gzip data at byte"), std::string::npos);
  }
}

}  // namespace snapshot_test
}  // namespace cufit::memory
