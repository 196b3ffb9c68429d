// SPDX-License-Identifier: Apache-2.0
// The real traces of tests/traces with what every test of this folder needs of them, read once.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "memory/analysis/steps.h"
#include "support/places.h"

namespace cufit::analysis {

struct TestTrace {
  memory::Snapshot snapshot;
  memory::VerifiedRecording verified;
  Lifetimes lifetimes;
};

inline const char* const k_all_traces[] = {"accum",
                                           "amp",
                                           "amp-limit1.02",
                                           "amp-limit1.2",
                                           "amp-roundup4",
                                           "cnn",
                                           "graphs",
                                           "lora",
                                           "oom-varlen",
                                           "streams",
                                           "streams-split64",
                                           "trace-gpt2-stacks",
                                           "trace-resnet",
                                           "trace-varlen",
                                           "varlen",
                                           "varlen-expandable",
                                           "varlen-limit1.02",
                                           "varlen-limit1.2",
                                           "varlen-ring"};

// Small runs that went wrong, one cause each (tests/gpu/failure_workload.py).
inline const char* const k_failures[] = {
    "failures/activation", "failures/conv",    "failures/evalgrad", "failures/first",
    "failures/frag",       "failures/gan",     "failures/graph",    "failures/infer",
    "failures/kept",       "failures/keptok",  "failures/optstate", "failures/other",
    "failures/oversized",  "failures/pending", "failures/quad",     "failures/weights"};

// Programs written as users write them, each with its cause as its name
// (tests/gpu/oom_workload.py).
inline const char* const k_causes[] = {
    "oom/activation_peak", "oom/attention_quadratic", "oom/autotune_workspace",
    "oom/cudagraph_pool",  "oom/decode_spike",        "oom/eval_without_no_grad",
    "oom/fragmentation",   "oom/graph_retained",      "oom/optimizer_state",
    "oom/other_process",   "oom/oversized_input",     "oom/stale_reference",
    "oom/survives",        "oom/tensors_kept",        "oom/weights_exceed_capacity"};

inline memory::Snapshot read_trace(const std::string& name) {
  const std::string path = cufit::test::source_dir() + "/tests/traces/" + name;
  std::ifstream file(path + ".pkl.gz", std::ios::binary);
  if (!file) file.open(path + ".pickle.gz", std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return memory::read_snapshot(std::make_shared<MemorySource>(name, bytes.str())).value();
}

inline TestTrace test_trace(memory::Snapshot snapshot) {
  TestTrace trace;
  trace.snapshot = std::move(snapshot);
  trace.verified =
      memory::verify_recording(trace.snapshot, 0, memory::version_profile(2, 11)).value();
  trace.lifetimes = lifetimes_of(trace.snapshot, trace.verified);
  return trace;
}

inline const TestTrace& real_trace(const std::string& name) {
  static std::map<std::string, std::unique_ptr<TestTrace>> kept;
  std::unique_ptr<TestTrace>& trace = kept[name];
  if (!trace) trace = std::make_unique<TestTrace>(test_trace(read_trace(name)));
  return *trace;
}

}  // namespace cufit::analysis
