// SPDX-License-Identifier: Apache-2.0
// Any bytes as a memory snapshot, compressed or not. What comes out must be whole: every number in
// a row names something that is there.
#include <cstdlib>
#include <memory>
#include <string>

#include "memory/snapshot/snapshot.h"

namespace {

using namespace cufit;
using namespace cufit::memory;

void must(bool holds) {
  if (!holds) std::abort();
}

void check_stack(const Snapshot& snapshot, uint32_t stack) {
  if (stack == k_no_stack) return;
  must(stack < snapshot.stacks.size());
  for (uint32_t number : snapshot.stacks[stack]) {
    must(number < snapshot.stacks.frame_count());
    must(snapshot.stacks.frame(number).name < snapshot.texts.size());
    must(snapshot.stacks.frame(number).filename < snapshot.texts.size());
  }
}

void check_traces(const Snapshot& snapshot, const std::vector<Trace>& traces) {
  for (const Trace& trace : traces) {
    must(trace.first + trace.count <= snapshot.events.size());
    for (size_t i = 0; i < trace.count; ++i) {
      const TraceEvent& event = snapshot.events[trace.first + i];
      must(event.context < snapshot.contexts.size());
      must(event.action <= Action::other);
      (void)snapshot.text(snapshot.context(event).user_metadata);
      check_stack(snapshot, event.stack);
    }
  }
}

void check_segments(const Snapshot& snapshot, const std::vector<Segment>& segments) {
  for (const Segment& segment : segments) {
    check_stack(snapshot, segment.stack);
    for (const Block& block : segment.blocks) check_stack(snapshot, block.stack);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  SnapshotLimits limits;
  limits.expand.total_bytes = 4u << 20;
  limits.events = 1u << 16;
  Result<Snapshot> snapshot =
      read_snapshot(std::make_shared<MemorySource>(
                        "fuzz", std::string(reinterpret_cast<const char*>(data), size)),
                    limits);
  if (!snapshot) {
    must(!snapshot.error().what.empty());
    return 0;
  }
  check_traces(*snapshot, snapshot->traces);
  check_traces(*snapshot, snapshot->host_traces);
  check_segments(*snapshot, snapshot->segments);
  check_segments(*snapshot, snapshot->host_segments);
  for (const Annotation& annotation : snapshot->annotations) (void)snapshot->text(annotation.name);
  return 0;
}
