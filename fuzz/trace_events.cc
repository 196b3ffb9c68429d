// SPDX-License-Identifier: Apache-2.0
// Any bytes as an event file: reading ends, a prefix of what could be read can be read, and what
// was read can be laid side by side with itself and predicted.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "fit/prediction.h"
#include "formats/model/trace_events.h"

namespace {

using namespace cufit;
using formats::TraceEvents;

Result<TraceEvents> read(std::string bytes) {
  formats::TraceLimits limits;
  limits.expand.total_bytes = 1u << 20;
  limits.events = limits.rows = limits.numbers = 1u << 14;
  return formats::read_trace_events(std::make_shared<MemorySource>("fuzz", std::move(bytes)),
                                    limits);
}

// Says another batch size than the first.
void set_batch(TraceEvents& trace, const char* batch) {
  const auto text = static_cast<uint32_t>(trace.texts.size());
  trace.texts.insert(trace.texts.end(), {"batch", batch});
  trace.facts.push_back({text, text + 1});
}

void predict_all(TraceEvents trace, uint64_t other_bytes) {
  TraceEvents other = trace;
  for (formats::TraceEvent& event : other.events)
    if (event.bytes != 0) event.bytes = std::min(event.bytes, other_bytes);
  set_batch(trace, "2");
  set_batch(other, "4");
  const TraceEvents both[] = {std::move(trace), std::move(other)};
  const Result<fit::StepProgram> program = fit::align(both);
  if (!program) return;
  for (const uint64_t batch : {1u, 2u, 3u, 4u, 64u, 1u << 30}) {
    fit::Setup setup;
    if (batch % 2 == 0) setup.capacity = uint64_t{1} << 34;
    const Result<fit::Prediction> got = fit::predict(*program, batch, setup);
    if (!got) continue;
    if (got->peak_reserved < got->peak_allocated) std::abort();
    if (setup.capacity == 0 && got->peak_reserved_upper < got->peak_reserved) std::abort();
    const fit::Breakdown& at = got->breakdown;
    if (at.weights + at.buffers + at.gradients + at.optimizer_state + at.inputs + at.gathered +
            at.communication + at.activations + at.temporaries + at.workspaces + at.other !=
        got->peak_allocated)
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Result<TraceEvents> whole = read(bytes);
  if (!whole) return 0;
  for (const formats::TraceEvent& event : whole->events) {
    if (event.kind == formats::TraceEventKind::alloc && event.site >= whole->sites.size())
      std::abort();
  }
  const bool compressed = size >= 2 && (data[0] == 0x1f || data[0] == 0x28);
  if (!compressed && size > 0) {
    const Result<TraceEvents> cut = read(bytes.substr(0, size / 2));
    if (!cut || cut->events.size() > whole->events.size()) std::abort();
  }
  predict_all(std::move(*whole), uint64_t{1} << (size % 40));
  return 0;
}
