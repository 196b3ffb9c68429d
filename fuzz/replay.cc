// SPDX-License-Identifier: Apache-2.0
// Any events as a recording: verify and replay must end, whatever the events contradict.
#include <cstdlib>
#include <cstring>

#include "bytes.h"
#include "memory/replay/replay.h"

namespace {

using namespace cufit::memory;

const char* const k_settings[] = {"", "expandable_segments:True", "max_split_size_mb:20",
                                  "garbage_collection_threshold:0.1",
                                  "expandable_segments:True,max_split_size_mb:40"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes{data, size};
  Recording recording;
  // Without stacks, or with a handful: who released a segment may be told by them.
  const uint8_t first = bytes.take();
  const VersionProfile version = version_profile(2, first % 15);
  const auto stacks = static_cast<uint8_t>(first / 15);
  const VersionProfile newest;
  ReplayOptions options;
  options.allocator.version = version;
  options.allocator.settings =
      cufit::memory::parse_allocator_settings(k_settings[bytes.take() % 5], newest).value();
  const uint8_t limit = bytes.take();
  if (limit > 0) options.allocator.allowed_memory_maximum = limit * 8 * k_mib;
  options.stop_at_oom = limit % 2 == 0;
  recording.settings = options.allocator.settings;
  recording.version = version;
  for (int segments = bytes.take() % 6; segments > 0; --segments) {
    SegmentView segment;
    segment.address = bytes.place();
    segment.size = bytes.place();
    const uint8_t flags = bytes.take();
    segment.is_small = flags & 1;
    segment.is_expandable = flags & 2;
    segment.pool = flags >> 6;
    for (int blocks = flags >> 2 & 7; blocks > 0; --blocks) {
      BlockView block;
      block.address = bytes.place();
      block.size = bytes.place();
      block.state = static_cast<BlockUse>(bytes.take() % 3);
      segment.blocks.push_back(block);
    }
    recording.final_segments.push_back(segment);
  }
  recording.releases_have_stacks = stacks & 1;
  recording.has_native_stacks = stacks & 2;
  recording.emptying_stacks = {3};
  while (bytes.size > 0) {
    RecordedEvent event;
    if (stacks & 4) event.stack = bytes.take() % 4;
    const uint8_t what = bytes.take();
    event.action = static_cast<Action>(what % 9);
    event.stream = what >> 6;
    event.pool = what == 77 ? 100000 : what >> 7;
    event.address = bytes.place();
    event.size = bytes.place();
    recording.events.push_back(event);
  }
  const Program program = compile_program(recording);
  const Verification check = verify(program, options);
  if (check.segment_events_matched > check.segment_events) std::abort();
  const ReplayResult result = replay(program, options);
  if (result.stats.reserved_bytes.peak < result.stats.reserved_bytes.current) std::abort();
  return 0;
}
