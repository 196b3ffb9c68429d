// SPDX-License-Identifier: Apache-2.0
// Any events, blocks and stacks as a snapshot: the page of mem view must come out, and its numbers
// must add up.
#include <cstdlib>
#include <string>

#include "bytes.h"
#include "report/page/mem_view.h"

namespace {

using namespace cufit;
using memory::Snapshot;

uint32_t stack_of(Snapshot& snapshot, uint8_t kind) {
  if (kind % 4 == 0) return memory::k_no_stack;
  if (kind % 4 == 1) return memory::k_empty_stack;
  const std::string name =
      kind % 4 == 2 ? "</script><!--" : std::string(1, static_cast<char>(kind));
  memory::Frame frame;
  frame.name = snapshot.texts.intern(name);
  frame.filename = snapshot.texts.intern("/a/" + name);
  frame.line = kind;
  const uint32_t number = snapshot.stacks.intern_frame(frame);
  return snapshot.stacks.intern(std::span(&number, 1));
}

memory::Segment segment_of(Snapshot& snapshot, Bytes& bytes) {
  memory::Segment segment;
  segment.address = bytes.place();
  segment.total_size = bytes.place();
  const uint8_t flags = bytes.take();
  segment.is_small = flags & 1;
  segment.is_expandable = flags & 2;
  if (flags & 128) segment.pool = memory::PoolId{1, 0};
  for (int blocks = flags >> 2 & 7; blocks > 0; --blocks) {
    memory::Block block;
    block.address = bytes.place();
    block.size = bytes.place();
    block.requested_size = block.size;
    block.state = static_cast<memory::BlockState>(bytes.take() % 3);
    block.stack = stack_of(snapshot, bytes.take());
    segment.blocks.push_back(block);
  }
  return segment;
}

Snapshot snapshot_of(Bytes bytes) {
  Snapshot snapshot;
  snapshot.contexts.emplace_back();
  snapshot.contexts.emplace_back().stream = 7;
  const bool timed = bytes.take() % 4 != 0;
  for (int segments = bytes.take() % 6; segments > 0; --segments)
    snapshot.segments.push_back(segment_of(snapshot, bytes));
  while (bytes.size > 0) {
    memory::TraceEvent event;
    const uint8_t what = bytes.take();
    event.action = static_cast<memory::Action>(what % 11);
    event.context = what >> 7;
    event.address = bytes.place();
    event.size = bytes.place();
    if (timed) event.time_us = bytes.take();
    event.stack = stack_of(snapshot, bytes.take());
    snapshot.events.push_back(event);
  }
  snapshot.traces.push_back({0, snapshot.events.size()});
  return snapshot;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void check_sums(const analysis::View& view, const analysis::Timeline& timeline) {
  const analysis::Level& finest = timeline.levels.front();
  for (size_t i = 0; i < finest.max.size(); ++i) {
    uint64_t parts = 0, direct = 0;
    for (uint32_t g = 0; g < timeline.groups; ++g) parts += timeline.parts[i * timeline.groups + g];
    for (const analysis::Lifetime& row : view.lifetimes.rows)
      if (analysis::is_allocated(row, finest.at[i])) direct += row.block_bytes;
    require(parts == finest.max[i] && parts == direct && finest.min[i] <= parts);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Snapshot snapshot = snapshot_of({data, size});
  const auto verified = memory::verify_recording(snapshot, 0, std::nullopt);
  if (!verified) return 0;
  const analysis::View view = analysis::view_of(snapshot, *verified);
  check_sums(view, view.by_kind);
  check_sums(view, view.by_stack);
  const std::string page =
      report::mem_view_html({view, snapshot, knowledge::Knowledge::builtin(), "</title>"}, "en");
  size_t scripts = 0;
  for (size_t at = page.find("</script>"); at != std::string::npos;
       at = page.find("</script>", at + 1))
    ++scripts;
  require(scripts == 5);
  return 0;
}
