// SPDX-License-Identifier: Apache-2.0
// snapshot_figures FILE: counts and sums over a memory snapshot as one JSON line, with the time
// that reading took. tools/compare-snapshots makes the same from Python's pickle.load.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "host/files/host.h"
#include "memory/snapshot/snapshot.h"

namespace {

using namespace cufit;
using namespace cufit::memory;

void print_traces(const char* name, const Snapshot& snapshot, const std::vector<Trace>& traces) {
  std::printf("\"%s\":[", name);
  for (size_t t = 0; t < traces.size(); ++t) {
    uint64_t actions[11] = {}, size = 0, address = 0, time = 0, stream = 0, frames = 0, lines = 0,
             metadata = 0;
    for (size_t i = 0; i < traces[t].count; ++i) {
      const TraceEvent& event = snapshot.events[traces[t].first + i];
      ++actions[static_cast<size_t>(event.action)];
      size += event.size == k_absent ? 0 : event.size * (i % 7 + 1);  // order matters
      address += event.address == k_absent ? 0 : event.address * (i % 5 + 1);
      time += event.time_us == k_absent ? 0 : event.time_us;
      stream += snapshot.context(event).stream;
      metadata += snapshot.text(snapshot.context(event).user_metadata).size();
      metadata += snapshot.text(snapshot.context(event).compile_context).size();
      if (event.stack == k_no_stack) continue;
      uint64_t depth = 0;
      for (uint32_t number : snapshot.stacks[event.stack]) {
        const Frame& frame = snapshot.stacks.frame(number);
        lines += frame.line * ++depth + snapshot.text(frame.name).size() +
                 snapshot.text(frame.filename).size();
      }
      frames += depth;
    }
    std::printf("%s{\"count\":%zu,\"actions\":[", t ? "," : "", traces[t].count);
    for (size_t a = 0; a < 11; ++a) {
      std::printf("%s%llu", a ? "," : "", static_cast<unsigned long long>(actions[a]));
    }
    auto number = [](const char* key, uint64_t value) {
      std::printf(",\"%s\":%llu", key, static_cast<unsigned long long>(value));
    };
    std::printf("]");
    number("size", size), number("address", address), number("time", time),
        number("stream", stream), number("frames", frames), number("lines", lines),
        number("metadata", metadata);
    std::printf("}");
  }
  std::printf("]");
}

void print_segments(const Snapshot& snapshot) {
  uint64_t total = 0, allocated = 0, blocks = 0, size = 0, requested = 0, address = 0, frames = 0,
           states[3] = {}, small = 0, expandable = 0;
  for (const Segment& segment : snapshot.segments) {
    total += segment.total_size;
    allocated += segment.allocated_size;
    small += segment.is_small;
    expandable += segment.is_expandable;
    for (const Block& block : segment.blocks) {
      ++blocks;
      size += block.size;
      requested += block.requested_size == k_absent ? 0 : block.requested_size;
      address += block.address;
      ++states[static_cast<size_t>(block.state)];
      if (block.stack != k_no_stack) frames += snapshot.stacks[block.stack].size();
    }
  }
  std::printf("\"segments\":{\"count\":%zu", snapshot.segments.size());
  auto number = [](const char* key, uint64_t value) {
    std::printf(",\"%s\":%llu", key, static_cast<unsigned long long>(value));
  };
  number("total", total), number("allocated", allocated), number("blocks", blocks),
      number("size", size), number("requested", requested), number("address", address),
      number("frames", frames), number("active", states[0]), number("pending", states[1]),
      number("inactive", states[2]), number("small", small), number("expandable", expandable);
  std::printf("}");
}

// The most memory this process had at once: VmHWM. A parent cannot measure it, because a child
// starts with its parent's.
std::string peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return line.substr(6, line.find(" kB") - 6);
  }
  return "0";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  host::RealHost machine;
  auto source = machine.open(argv[1]);
  if (!source) {
    std::fprintf(stderr, "%s\n", source.error().text().c_str());
    return 3;
  }
  auto begin = std::chrono::steady_clock::now();
  Result<Snapshot> snapshot = read_snapshot(std::shared_ptr<const ByteSource>(std::move(*source)));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!snapshot) {
    std::fprintf(stderr, "%s\n", snapshot.error().text().c_str());
    return 3;
  }
  std::printf("{");
  print_segments(*snapshot);
  std::printf(",");
  print_traces("traces", *snapshot, snapshot->traces);
  std::printf(
      ",\"annotations\":%zu,\"settings\":%s,\"bytes\":%llu,\"stacks\":%zu,\"frames\":%zu,"
      "\"contexts\":%zu,\"texts\":%zu,\"peak_kib\":%s,"
      "\"seconds\":%.6f}\n",
      snapshot->annotations.size(), snapshot->settings ? "true" : "false",
      static_cast<unsigned long long>(snapshot->size_bytes), snapshot->stacks.size(),
      snapshot->stacks.frame_count(), snapshot->contexts.size(), snapshot->texts.size(),
      peak_kib().c_str(), seconds);
}
