// SPDX-License-Identifier: Apache-2.0
// The real traces of tests/traces with what every test of this folder needs of them, read once.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "analysis/steps.h"
#include "memory/snapshot_recording.h"

namespace cufit::analysis {

struct TestTrace {
  memory::Snapshot snapshot;
  memory::Recording recording;
  memory::Program program;
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

inline memory::Snapshot read_trace(const std::string& name) {
  std::ifstream file(CUFIT_SOURCE_DIR "/tests/traces/" + name + ".pkl.gz", std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return memory::read_snapshot(std::make_shared<MemorySource>(name, bytes.str())).value();
}

inline TestTrace test_trace(memory::Snapshot snapshot) {
  TestTrace trace;
  trace.snapshot = std::move(snapshot);
  trace.recording = memory::recording_of(trace.snapshot, 0, memory::version_profile(2, 11)).value();
  trace.program = memory::compile_program(trace.recording);
  trace.lifetimes = lifetimes_of(trace.snapshot, 0, trace.recording, trace.program);
  return trace;
}

inline const TestTrace& real_trace(const std::string& name) {
  static std::map<std::string, std::unique_ptr<TestTrace>> kept;
  std::unique_ptr<TestTrace>& trace = kept[name];
  if (!trace) trace = std::make_unique<TestTrace>(test_trace(read_trace(name)));
  return *trace;
}

}  // namespace cufit::analysis
