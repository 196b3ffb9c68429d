// SPDX-License-Identifier: Apache-2.0
// Any events, stacks and annotations as a snapshot: mem explain's analysis must end, and its
// categories and places must add up to what is allocated.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

#include "memory/analysis/allocated_walk.h"
#include "memory/analysis/comparison.h"
#include "bytes.h"

namespace {

using namespace cufit;
using memory::Snapshot;

struct Written {
  const char* file;
  const char* name;
};
const Written k_frames[] = {{"/x-packages/torch/optim/adam.py", "step"},
                            {"/x-packages/torch/optim/optimizer.py", "zero_grad"},
                            {"/x-packages/torch/nn/modules/module.py", "_apply"},
                            {"/x-packages/torch/nn/modules/module.py", "_call_impl"},
                            {"/x-packages/torch/nn/modules/conv.py", "_conv_forward"},
                            {"/home/a/model.py", "attention"},
                            {"/home/a/train.py", "validate"},
                            {"", ""}};

uint32_t stack_of(Snapshot& snapshot, uint8_t kind) {
  if (kind % 16 == 0) return memory::k_no_stack;
  if (kind % 16 == 1) return memory::k_empty_stack;
  uint32_t frames[2];
  for (uint32_t& frame : frames) {
    const Written& written = k_frames[kind % 8];
    frame = snapshot.stacks.intern_frame(
        {snapshot.texts.intern(written.name), snapshot.texts.intern(written.file), kind});
    kind = static_cast<uint8_t>(kind / 8);
  }
  return snapshot.stacks.intern(frames);
}

void add_annotations(Snapshot& snapshot, Bytes& bytes) {
  const char* const names[] = {"Optimizer.step#A.step", "Optimizer.zero_grad#A.zero_grad",
                               "Optimizer.step#B.step", "other"};
  for (int count = bytes.take() % 16; count > 0; --count) {
    memory::Annotation annotation;
    const uint8_t what = bytes.take();
    annotation.name = snapshot.texts.intern(names[what % 4]);
    annotation.start = what & 4;
    annotation.device = what >> 3 & 1;
    annotation.time_us = bytes.take();
    snapshot.annotations.push_back(annotation);
  }
}

Snapshot snapshot_of(Bytes bytes) {
  Snapshot snapshot;
  snapshot.contexts.emplace_back();
  snapshot.contexts.emplace_back().stream = 7;
  snapshot.contexts.emplace_back().pool = memory::PoolId{1, 0};
  const bool timed = bytes.take() % 4 != 0;
  add_annotations(snapshot, bytes);
  uint64_t time = 0;
  while (bytes.size > 0) {
    memory::TraceEvent event;
    const uint8_t what = bytes.take();
    // Mostly allocs and both frees of them.
    const uint8_t action = what % 16;
    event.action =
        action < 11 ? static_cast<memory::Action>(action) : static_cast<memory::Action>(action % 3);
    event.context = what >> 6 == 3 ? 2 : what >> 7;
    event.address = bytes.near_place();
    event.size = bytes.near_place();
    if (timed) event.time_us = time += bytes.take() % 4;
    event.stack = stack_of(snapshot, bytes.take());
    snapshot.events.push_back(event);
  }
  snapshot.traces.push_back({0, snapshot.events.size()});
  return snapshot;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Snapshot snapshot = snapshot_of({data, std::min<size_t>(size, 4096)});
  const auto verified = memory::verify_recording(snapshot, 0, memory::VersionProfile());
  if (!verified) return 0;
  const auto seen = analysis::diagnose(snapshot, *verified, std::nullopt);
  if (!seen) return 0;
  require(std::is_sorted(seen->steps.begins.begin(), seen->steps.begins.end()));
  require(seen->categories.size() == seen->lifetimes.rows.size());
  analysis::AllocatedWalk allocated(*verified->program, seen->lifetimes);
  for (const uint32_t event : {0u, seen->lifetimes.events / 2, seen->lifetimes.events - 1}) {
    const uint64_t bytes = allocated.to(event);
    const analysis::Footprint held =
        analysis::footprint_at(seen->lifetimes, seen->categories, event);
    require(std::accumulate(held.begin(), held.end(), uint64_t{0}) == bytes);
    require(analysis::moment_at(*verified, seen->lifetimes, event).allocated_bytes == bytes);
    uint64_t in_sites = 0;
    for (const analysis::Site& site :
         analysis::sites_at(snapshot, seen->lifetimes, seen->categories, event))
      in_sites += site.bytes;
    require(in_sites == bytes);
  }
  for (const analysis::PlaceChange& change :
       analysis::place_changes(snapshot, *seen, snapshot, *seen))
    require(change.grew_bytes() == 0);
  return 0;
}
