// SPDX-License-Identifier: Apache-2.0
// A small training program as traces at any batch size: two layers, a loss, SGD with momentum.
#pragma once

#include "fit/prediction.h"
#include "support/trace_writer.h"

namespace cufit::fit {

using formats::StorageCategory;
using formats::TraceMark;
using formats::TracePhase;
using test::TraceWriter;

constexpr uint64_t k_mib = 1u << 20;

struct Sites {
  uint32_t weight, data, matmul, act, loss, grad, matmul_back, state;
};

inline Sites write_sites(TraceWriter& out) {
  return {out.site("empty", TracePhase::setup, "", "train.py:3"),
          out.site("to", TracePhase::other, "", "train.py:9"),
          out.site("matmul", TracePhase::forward, "body.0", "train.py:10"),
          out.site("relu", TracePhase::forward, "body.1", "train.py:10"),
          out.site("loss", TracePhase::forward, "", "train.py:11"),
          out.site("mm", TracePhase::backward, "body.0", "train.py:12"),
          out.site("matmul", TracePhase::backward, "body.0", "train.py:12"),
          out.site("zeros_like", TracePhase::optimizer, "", "train.py:13")};
}

// One step: per sample 1 MiB of input, 2 MiB of activation kept for backward, 3 MiB that is not.
inline void write_step(TraceWriter& out, const Sites& s, uint64_t batch, uint32_t weight,
                       bool first) {
  out.mark(TraceMark::step_begins);
  const uint32_t input = out.alloc(batch * k_mib, s.data);
  out.category(input, StorageCategory::input);
  out.call(s.matmul, {32, 0, 1, batch, 1024, 1024});
  const uint32_t kept = out.alloc(2 * batch * k_mib, s.act);
  const uint32_t passing = out.alloc(3 * batch * k_mib, s.loss);
  out.free(passing);
  out.call(s.matmul_back, {32, 0, 1, 1024, 1024, batch});
  const uint32_t gradient = out.alloc(64 * k_mib, s.grad);
  out.category(gradient, StorageCategory::gradient);
  out.free(kept);
  if (first) out.category(out.alloc(64 * k_mib, s.state), StorageCategory::optimizer_state);
  out.free(gradient);
  out.free(input);
  out.mark(TraceMark::step_ends);
  (void)weight;
}

inline TraceWriter small_program(uint64_t batch, int steps = 3) {
  TraceWriter out(batch);
  const Sites s = write_sites(out);
  const uint32_t weight = out.alloc(64 * k_mib, s.weight);
  out.category(weight, StorageCategory::parameter);
  for (int i = 0; i < steps; ++i) write_step(out, s, batch, weight, i == 0);
  out.end();
  return out;
}

inline Result<StepProgram> aligned(std::initializer_list<TraceWriter> writers) {
  std::vector<formats::TraceEvents> traces;
  for (const TraceWriter& writer : writers) traces.push_back(writer.read());
  return align(traces);
}

}  // namespace cufit::fit
