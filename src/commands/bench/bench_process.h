// SPDX-License-Identifier: Apache-2.0
// One side of a comparison while it is measured: a process of an environment, asked in words that come back as values or
// as a refusal with its kind. What kills the process is a refusal, too.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "commands/context.h"
#include "host/python/bench_child.h"
#include "resolve/bench/measurement.h"

namespace cufit::commands {

struct BenchWorkload {
  std::string name;  // "resnet50"; of a file its path
  std::string file;  // absolute; empty: one of cufit's own
};

// What all processes of a run have in common.
struct BenchSetting {
  const Context& context;
  const host::ScriptFolder& folder;
  host::Interrupts& interrupts;
  std::string device;          // "0", "cpu"
  double answer_seconds = 0;   // for any one answer
  std::function<void()> idle;  // while one works
};

class BenchProcess {
 public:
  BenchProcess(const BenchSetting& setting, const resolve::BenchEnvironment& env)
      : setting_(setting), env_(env) {}

  // Starts it where it does not run, and asks who it is.
  formats::BenchAnswer<formats::BenchHello> hello();
  formats::BenchAnswer<formats::BenchLoaded> load(const BenchWorkload& workload,
                                                  const std::string& precision,
                                                  std::optional<uint64_t> batch);
  // `seconds`: what it is meant to take; an answer has that much more time.
  formats::BenchAnswer<formats::BenchBlock> block(uint64_t calls, double seconds);
  void free();  // of memory on the device
  pid_t pid() const { return child_ ? child_->pid() : -1; }

 private:
  // The line, or a refusal of kind died, hung, garbage or interrupted.
  formats::BenchRefusal ask(const Json& request, std::string& line, double more_seconds = 0);

  const BenchSetting& setting_;
  const resolve::BenchEnvironment& env_;
  std::optional<host::BenchChild> child_;
};

}  // namespace cufit::commands
